"""Which samples of an item are still to be asked."""

from __future__ import annotations

from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.index import Ended
from rl_cli.data.batch.items import Item


def row_key(item: Item, sample: int) -> str:
    return f"{item.key}-{sample}"


def samples_to_ask(config: BatchConfig, item: Item, ended: Ended) -> list[int]:
    """The numbers of the samples to ask next, [] when the item needs no more.

    With a target, only as many as are lacking of it: when they have ended, ask again.

    Args:
        config: Of the batch.
        item: What is asked.
        ended: What the ledger says of this item's samples.
    """
    wanted = item.samples or config.target or config.most_samples
    if config.target is None:
        return [number for number in range(wanted) if not ended.has(number)]
    most = config.max_samples_per_prompt or 4 * wanted
    left = [number for number in range(most) if not ended.has(number)]
    return left[: max(0, wanted - ended.accepted)]
