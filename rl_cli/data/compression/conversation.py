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
FIELDS = ("conversations", "messages")
SUMMARY_MARK, SHORTENED_MARK = "summary", "shortened_result"
"""What `marks` says of a compressed row."""


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


def conversation_of(row: dict[str, Any]) -> tuple[str, Conversation]:
    """The field that holds the row's conversation, and that.

    Raises:
        Unreadable: There is none, there are two, or it is in no known form.
    """
    from rl_cli.data.compression.chat_messages import ChatMessages
    from rl_cli.data.compression.from_value import FromValue

    found = [field for field in FIELDS if isinstance(row.get(field), list)]
    if len(found) != 1:
        what = "both {} and {}" if found else "neither {} nor {}"
        raise Unreadable(f"it has {what.format(*FIELDS)} as a list")
    items = row[found[0]]
    if not items or not all(isinstance(item, dict) for item in items):
        raise Unreadable(f"{found[0]} is no list of turns")
    if "role" in items[0] and _is_chat(row, items):
        return found[0], ChatMessages(items, row.get("tools"))
    return found[0], FromValue(items, row.get("system_messages"))


def compressed(
    row: dict[str, Any], field: str, conversation: Conversation, summaries: Sequence[Summary], shortened: bool
) -> dict[str, Any]:
    """The row with its conversation as it is now, and marks that say what was done to it."""
    items, places = conversation.items(summaries)
    marks = row.get("marks")
    added = {SUMMARY_MARK} if summaries else set()
    added |= {SHORTENED_MARK} if shortened else set()
    made = {**row, field: items, "marks": sorted({*(marks if isinstance(marks, list) else []), *added}, key=str)}
    if summaries:
        metadata = row.get("metadata")
        made["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "summary_turns": places}
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


def _is_chat(row: dict[str, Any], items: Sequence[dict[str, Any]]) -> bool:
    """Whether calls and thinking have fields of their own, rather than being part of the text."""
    fields = ("tool_calls", "tool_call_id", "reasoning")
    return "tools" in row or any(item.get(field) is not None for item in items for field in fields)
