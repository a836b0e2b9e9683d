"""Periodic evaluation: held-out items, asked again from time to time, become a curve of scores."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from rl_cli.core.files import append_jsonl, read_jsonl
from rl_cli.data.batch.asked import held_out_items
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.items import Item
from rl_cli.data.generation.outcome import Outcome
from rl_cli.data.generation.workers import Workers


class Evaluations:
    """The held-out items of a batch, asked with the same seeds each time; they never become rows.

    Raises:
        RlCliError: As `held_out_items`.
    """

    def __init__(self, config: BatchConfig, folder: BatchFolder) -> None:
        self._every, self._curve = int(config.eval_every or 0), folder.evaluations
        self._items = held_out_items(folder, config)
        done = [int(row.get("at", 0)) for row in read_jsonl(self._curve)]
        self._next = (max(done, default=0) // self._every + 1) * self._every

    def is_due(self, ended: int) -> bool:
        """Whether it is time; says so once for each time."""
        if ended < self._next:
            return False
        self._next = (ended // self._every + 1) * self._every
        return True

    async def run(self, workers: Workers, slots: asyncio.Semaphore, ended: int) -> None:
        """Asks every held-out item once, and appends a line to the curve.

        Args:
            slots: Shared with the batch's own samples.
            ended: Samples of the batch that have ended by now.

        Raises:
            OSError: The line cannot be written.
        """

        async def one(item: Item) -> Outcome:
            async with slots:
                return await workers.run(item, 0)

        outcomes = await asyncio.gather(*(one(item) for item in self._items))
        rows = [outcome.row for outcome in outcomes if outcome.row]
        scores = [row["score"] for row in rows if "score" in row]
        costs = [row["cost_usd"] for row in rows]
        line: dict[str, Any] = {
            "at": ended,
            "time": time.time(),
            "n": len(scores),
            "not_scored": len(outcomes) - len(scores),
            "mean_score": sum(scores) / len(scores) if scores else None,
            "requests": sum(row["usage"]["requests"] for row in rows),
            "cost_usd": None if None in costs else sum(cost or 0.0 for cost in costs),
        }
        await asyncio.to_thread(append_jsonl, self._curve, line, fsync=True)
