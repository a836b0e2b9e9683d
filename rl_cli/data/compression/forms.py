"""Which form the conversation of a row has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rl_cli.data.compression.chat_messages import ChatMessages
from rl_cli.data.compression.conversation import Conversation, Unreadable
from rl_cli.data.compression.from_value import FromValue

FIELDS = ("conversations", "messages")


def conversation_of(row: dict[str, Any]) -> tuple[str, Conversation]:
    """The field that holds the row's conversation, and that.

    Raises:
        Unreadable: There is none, there are two, or it is in no known form.
    """

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


def _is_chat(row: dict[str, Any], items: Sequence[dict[str, Any]]) -> bool:
    """Whether calls and thinking have fields of their own, rather than being part of the text."""
    fields = ("tool_calls", "tool_call_id", "reasoning", "reasoning_content")
    return "tools" in row or any(item.get(field) is not None for item in items for field in fields)
