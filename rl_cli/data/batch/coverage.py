"""What a batch should hold and does not: its input, compared with what has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import RlCliError
from rl_cli.data.batch.asked import asked_items
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.index import Index
from rl_cli.data.batch.items import Item
from rl_cli.data.batch.samples import row_key, samples_to_ask

MOST_LISTED = 100


@dataclass
class Coverage:
    """The input against the ledger."""

    items: int | None = None
    """That the input asks; None: it cannot be read, and nobody has counted."""
    expected: int | None = None
    """Samples that it asks for: those that ended, and those that are lacking."""
    pending: int | None = None
    """Samples that are lacking, of a target as many as at least."""
    missing: list[dict[str, str]] = field(default_factory=list)
    """The first MOST_LISTED of them: key, where in the input, the beginning of what is asked."""
    not_in_input: int = 0
    """Samples that have ended, of items that the input has no more."""
    bad_rows: int = 0
    """Rows of the input that cannot be used."""
    problem: str | None = None
    """Why the input cannot be read."""

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def coverage(folder: BatchFolder, config: BatchConfig, index: Index) -> Coverage:
    """Reads the input once, as far as the latest session was to take it.

    Args:
        folder: Of the batch.
        config: Of the batch.
        index: What has ended.
    """
    state = folder.state()
    found = Coverage(items=0, pending=0)
    known = 0

    def on_bad(where: str, why: str) -> None:
        found.bad_rows += 1

    try:
        for item in asked_items(folder, config, state.get("max_samples"), on_bad):
            ended = index.of(item.key)
            known += ended.done + ended.failed
            found.items = (found.items or 0) + 1
            lacking = samples_to_ask(config, item, ended)
            found.pending = (found.pending or 0) + len(lacking)
            for sample in lacking[: MOST_LISTED - len(found.missing)]:
                found.missing.append(_described(item, sample))
    except RlCliError as error:
        items = state.get("items")
        return Coverage(items if isinstance(items, int) else None, problem=str(error))
    found.expected = known + (found.pending or 0)
    found.not_in_input = sum(index.counts()) - known
    return found


def _described(item: Item, sample: int) -> dict[str, str]:
    asked = item.messages[-1]["content"] or ""
    return {"key": row_key(item, sample), "where": item.where, "prompt": one_line(asked, 80)}
