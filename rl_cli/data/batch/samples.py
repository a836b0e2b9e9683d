"""Which samples of an item are still to be asked."""

from __future__ import annotations

from collections.abc import Callable

from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.filters import Filters
from rl_cli.data.batch.index import Ended
from rl_cli.data.batch.items import Item
from rl_cli.data.rows import Row


def row_key(item: Item, sample: int) -> str:
    """`HASH-OCCURRENCE-SAMPLE`."""
    return f"{item.key}-{sample}"


def samples_to_ask(config: BatchConfig, item: Item, ended: Ended) -> list[int]:
    """The numbers of the samples to ask next, [] when the item needs no more.

    With a target, as many as it lacks: when they have ended, ask again.

    Args:
        config: Of the batch.
        item: What is asked.
        ended: What the ledger knows of this item.
    """
    if config.target is None:
        wanted = item.samples or config.best_of or config.samples
        return [number for number in range(wanted) if not ended.has(number)]
    left = [number for number in range(config.most_samples) if not ended.has(number)]
    return left[: max(0, config.target - ended.accepted)]


def most_to_ask(config: BatchConfig, item: Item, ended: Ended) -> int:
    """How many samples of an item there may still be: with a target all that it allows."""
    numbers = samples_to_ask(config, item, ended)
    if config.target is None or not numbers:
        return len(numbers)
    return config.most_samples - ended.done - ended.failed


def accepts(config: BatchConfig) -> Callable[[Row], bool]:
    """Tells whether a row counts towards its item's target: a merge without options would keep it."""
    filters = Filters(min_score=config.min_score)
    return lambda row: filters.reason(row) is None
