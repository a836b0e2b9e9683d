"""The conversation of a row, whatever its form: turns that are counted, shortened and replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rl_cli.data.compression.plan import Run

ROLES = {
    "system": "system",
    "developer": "system",
    "human": "human",
    "user": "human",
    "gpt": "gpt",
    "assistant": "gpt",
    "tool": "tool",
}
"""The roles of both forms -> those of the from/value form."""
SUMMARY_MARK, SHORTENED_MARK = "summary", "shortened_result"
"""What `marks` says of a compressed row."""
PLACES = "summary_turns"
"""The field of `metadata` with the places of the summaries among the turns, from 0."""


class Unreadable(ValueError):
    """The row holds no conversation in a known form; its text says why."""


@dataclass(frozen=True)
class Summary:
    """What stands for a run of turns."""

    run: Run
    words: str


class Conversation(Protocol):
    """Turns in order, all three lists but `beside` of one length."""

    roles: list[str]
    """Of the from/value form."""
    texts: list[str]
    """As they are counted: in the from/value form."""
    beside: list[str]
    """Counted too, though no turns."""

    def results(self, at: int) -> list[str]:
        """The contents of a tool turn; none where they cannot be told."""
        ...

    def set_results(self, at: int, contents: Sequence[str]) -> None:
        """Puts others in their place."""
        ...

    def summary_text(self, words: str) -> str:
        """The text of a summary turn, as it is counted."""
        ...

    def items(self, summaries: Sequence[Summary]) -> tuple[list[Any], list[int]]:
        """The turns in the row's own form, runs replaced; the places of the summaries among them."""
        ...


def compressed(
    row: dict[str, Any], field: str, conversation: Conversation, summaries: Sequence[Summary], shortened: bool
) -> dict[str, Any]:
    """The row with its conversation as it is now, and marks that say what was done to it."""
    items, places = conversation.items(summaries)
    marks = row.get("marks")
    added = {SUMMARY_MARK} if summaries else set()
    added |= {SHORTENED_MARK} if shortened else set()
    made = {
        **row,
        field: items,
        "marks": sorted({*(marks if isinstance(marks, list) else []), *added}, key=str),
    }
    if summaries:
        metadata = row.get("metadata")
        known = metadata if isinstance(metadata, dict) else {}
        earlier = _still_there(known.get(PLACES), row[field], items)
        made["metadata"] = {**known, PLACES: sorted({*earlier, *places})}
    return made


def spliced(
    turns: Sequence[Sequence[Any]], summaries: Sequence[Summary], make: Callable[[str], Any]
) -> tuple[list[Any], list[int]]:
    """The items of all turns in order, what `make` gives in place of each run, and where those stand."""
    items: list[Any] = []
    places, at = [], 0
    for summary in summaries:
        items += [item for turn in turns[at : summary.run.start] for item in turn]
        places.append(len(items))
        items.append(make(summary.words))
        at = summary.run.end
    return items + [item for turn in turns[at:] for item in turn], places


def _still_there(places: Any, before: Sequence[Any], after: Sequence[Any]) -> list[int]:
    """Where the items of these places are now, as far as they are there."""
    listed = places if isinstance(places, list) else []
    held = {id(before[at]) for at in listed if type(at) is int and 0 <= at < len(before)}
    return [at for at, item in enumerate(after) if id(item) in held]
