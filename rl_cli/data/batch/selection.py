"""Of several samples of an item: the best, or the first that reach the target."""

from __future__ import annotations

from typing import Protocol

from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.index import split_key
from rl_cli.data.rows import Row


class Selection(Protocol):
    """Sees every row that the filters keep, then says which of them go."""

    def see(self, key: str, row: Row) -> None: ...

    def reason(self, key: str) -> str | None:
        """Why the row of a sample is discarded; None: it is kept."""


class Best:
    """Keeps the sample with the highest score; of equal ones the first. Without a score it is the lowest."""

    def __init__(self) -> None:
        self._best: dict[str, tuple[float, int]] = {}

    def see(self, key: str, row: Row) -> None:
        item, sample = split_key(key)
        found = (row.get("score", float("-inf")), -sample)
        self._best[item] = max(found, self._best.get(item, found))

    def reason(self, key: str) -> str | None:
        item, sample = split_key(key)
        return None if self._best[item][1] == -sample else "not_best"


class Target:
    """Keeps so many samples, the first by their numbers."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: dict[str, int] = {}
        """Item -> a bit for each of its samples."""

    def see(self, key: str, row: Row) -> None:
        item, sample = split_key(key)
        self._kept[item] = self._kept.get(item, 0) | 1 << sample

    def reason(self, key: str) -> str | None:
        item, sample = split_key(key)
        before = self._kept[item] & ((1 << sample) - 1)
        return None if before.bit_count() < self._count else "beyond_target"


def selection_of(config: BatchConfig) -> Selection | None:
    """What a batch's settings ask for; None: all samples are kept."""
    if config.best_of is not None:
        return Best()
    return Target(config.target) if config.target is not None else None
