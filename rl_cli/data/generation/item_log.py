"""Log lines of a batch: each begins with the item that it is about, as `[item 17]`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from rl_cli.core.printable import printable
from rl_cli.data.batch.items import Item

_item: ContextVar[str] = ContextVar("item", default="")
_NUMBER = re.compile(r"[0-9]+\Z")
LOGGERS = ("rl_cli", "environments", "tools")


@contextmanager
def about(item: Item) -> Iterator[None]:
    """Lines that are logged meanwhile, by this task and those that it starts, are about `item`."""
    number = _NUMBER.search(item.where)
    token = _item.set(f"[item {number[0] if number else item.where}] ")
    try:
        yield
    finally:
        _item.reset(token)


@contextmanager
def logging_to(path: Path) -> Iterator[None]:
    """Appends what our own packages log to a file, from INFO on, secrets masked."""
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
    loggers = [(logging.getLogger(name), logging.getLogger(name).level) for name in LOGGERS]
    for logger, _ in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in loggers:
            logger.removeHandler(handler)
            logger.setLevel(level)
        handler.close()


class _Formatter(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _item.get() + " ".join(record.message.split())
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
