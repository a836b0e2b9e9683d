"""The items of an input, read ahead of those that are asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import islice

from rl_cli.core.errors import RlCliError
from rl_cli.data.batch.items import Item

READ_AHEAD = 32
"""Items that are read at once."""


async def read_ahead(items: Iterator[Item]) -> AsyncIterator[Item]:
    """The items, read in a thread: a disk or a hub may be slow.

    Raises:
        RlCliError: The input cannot be read on; raised behind all items that precede that.
    """
    error: RlCliError | None = None

    def read() -> Iterator[Item]:
        nonlocal error
        try:
            yield from islice(items, READ_AHEAD)
        except RlCliError as problem:
            error = problem

    while block := await asyncio.to_thread(lambda: list(read())):
        for item in block:
            yield item
        if error:
            break
    if error:
        raise error
