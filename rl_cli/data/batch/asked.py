"""The items that a batch asks: its input without what is held out for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import explain_os_error, read_json, write_json
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.items import Item, items

OnBad = Callable[[str, str], None]
"""Called with place and reason of each row of the input that cannot be used."""


def asked_items(folder: BatchFolder, config: BatchConfig, limit: int | None, on_bad: OnBad) -> Iterator[Item]:
    """The items in the order of the input, none that asks the same as a held-out one.

    Where nothing was held out yet, the first are left out that will be.

    Args:
        folder: Of the batch.
        config: Of the batch.
        limit: So many items at most; None: all.
        on_bad: See items().

    Raises:
        RlCliError: As items().
    """
    chosen = _held_out(folder)
    found = items(config.input, on_bad)
    return islice(_besides(found, set(chosen), 0 if chosen else config.eval_held_out), limit)


def _besides(found: Iterator[Item], kept_out: set[str], lacking: int) -> Iterator[Item]:
    for item in found:
        digest = _hash(item)
        if len(kept_out) < lacking:
            kept_out.add(digest)
        if digest not in kept_out:
            yield item


def held_out_items(folder: BatchFolder, config: BatchConfig) -> list[Item]:
    """The items for evaluation. The first of the input are chosen once; an edited input changes nothing.

    Raises:
        BadUsage: The input has no more items than are to be held out.
        RlCliError: As items(), or the choice cannot be written.
    """
    if not config.eval_held_out:
        return []
    chosen = _held_out(folder)
    found: dict[str, Item] = {}
    for item in items(config.input, lambda where, why: None):
        if len(found) == (len(chosen) or config.eval_held_out):
            break
        if not chosen or _hash(item) in chosen:
            found.setdefault(_hash(item), item)
    else:
        if not chosen:
            raise none_left(config)
    if not chosen:
        try:
            write_json(folder.held_out, list(found))
        except OSError as error:
            raise explain_os_error(error, folder.held_out) from error
    return list(found.values())


def none_left(config: BatchConfig) -> BadUsage:
    """The error of an input that has no items beside those for evaluation."""
    hint = "lower eval_held_out, or give more items"
    return BadUsage(f"{config.input} has no items beside those to be held out", hint)


def _held_out(folder: BatchFolder) -> frozenset[str]:
    """The hashes of what is held out.

    Raises:
        BadUsage: The choice is there, and damaged: what is held out could become rows.
    """
    try:
        chosen = read_json(folder.held_out)
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError) as error:
        raise BadUsage(f"{folder.held_out} cannot be read: {error}") from error
    if not isinstance(chosen, list):
        raise BadUsage(f"{folder.held_out} is damaged", "it is a list of the hashes of what is held out")
    return frozenset(str(digest) for digest in chosen)


def _hash(item: Item) -> str:
    return item.key.partition("-")[0]
