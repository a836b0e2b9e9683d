"""Batches made by hand: inputs, rows, ledgers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.config_file import load_config
from rl_cli.data.batch.entries import Entry
from rl_cli.data.batch.folder import BatchFolder, batch_folder
from rl_cli.data.batch.items import Item, items
from rl_cli.data.batch.ledger import Ledger
from rl_cli.data.batch.samples import accepts, row_key, samples_to_ask
from rl_cli.data.rows import Row


def write_input(path: Path, rows: Iterable[Any]) -> Path:
    """JSON lines; a row that is text is a prompt."""
    lines = ({"prompt": row} if isinstance(row, str) else row for row in rows)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def read_items(path: Path | str) -> list[Item]:
    """The items of an input without a bad row."""
    return list(items(str(path), lambda where, why: None))


def begun(path: Path, **flags: Any) -> tuple[BatchFolder, BatchConfig]:
    """A batch of an input, before anything is asked."""
    config = load_config(None, {"name": "batch", "input": str(path), "model": "openai/test", **flags})
    folder = batch_folder(config.name)
    folder.begin(config)
    return folder, config


def row(key: str, text: str = "an answer", **fields: Any) -> Row:
    made: dict[str, Any] = {
        "key": key,
        "messages": [{"role": "user", "content": key}, {"role": "assistant", "content": text}],
        "tools": [{"type": "function", "function": {"name": "terminal"}}],
        "completed": True,
        "usage": {"input_tokens": 10, "output_tokens": 3, "cached_tokens": 1, "requests": 2},
        "cost_usd": 0.1,
        "model": "openai/test",
        "sampling": {},
        "seed": 0,
        "toolsets": ["terminal"],
        "tool_stats": {},
        "reasoning": {"turns": 1, "with": 1},
        "marks": [],
        "metadata": {},
    }
    return {**made, **fields}  # type: ignore[typeddict-item]


def done(key: str, **fields: Any) -> Entry:
    return {"key": key, "state": "done", "reason": None, "attempts": 1, "row": row(key, **fields)}


def failed(key: str, reason: str = "deadline") -> Entry:
    return {"key": key, "state": "failed", "reason": reason, "error": "late", "attempts": 3, "row": None}


def append(folder: BatchFolder, entries: Iterable[Entry]) -> None:
    """Through the ledger, as the runner does."""

    async def write() -> None:
        ledger = Ledger(folder.ledger)
        await asyncio.gather(*(ledger.append(entry) for entry in entries))
        ledger.close()

    asyncio.run(write())


def still_to_ask(folder: BatchFolder, config: BatchConfig) -> list[str]:
    """The keys of the samples that a start of the batch would ask first."""
    ledger = Ledger(folder.ledger, accepts(config))
    keys = [
        row_key(item, sample)
        for item in read_items(config.input)
        for sample in samples_to_ask(config, item, ledger.index.of(item.key))
    ]
    ledger.close()
    return keys


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
