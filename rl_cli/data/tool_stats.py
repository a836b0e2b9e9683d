"""How often each tool was called and how often that worked, and how many turns have reasoning."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypedDict

from rl_cli.core.messages import Message


class ToolCount(TypedDict):
    count: int
    """Calls, with those that no result answers."""
    success: int
    failure: int


def is_failure(content: str) -> bool:
    """Whether a result tells of a failure.

    It does if it is a JSON object with an `error` that is not empty or with `success` or `ok` false, or if it
    is text that is empty or begins with "error:". An exit code that is not zero is no failure by itself.
    """
    begun = content.lstrip()
    if not begun or begun[:6].casefold() == "error:":
        return True
    if not begun.startswith("{"):
        return False
    try:
        value = json.loads(content, parse_int=float)
    except (ValueError, RecursionError):
        return False
    return bool(value.get("error")) or value.get("success") is False or value.get("ok") is False


def tool_stats(messages: Iterable[Message]) -> dict[str, ToolCount]:
    """Tool -> its counts, in the order of first calls.

    Args:
        messages: Canonical; each result names its tool.
    """
    stats: dict[str, ToolCount] = {}
    for message in messages:
        for call in message.get("tool_calls", ()):
            name = call["function"]["name"]
            stats.setdefault(name, {"count": 0, "success": 0, "failure": 0})["count"] += 1
        if message["role"] == "tool":
            stats[message["name"]]["failure" if is_failure(message["content"] or "") else "success"] += 1
    return stats


def reasoning_coverage(messages: Iterable[Message]) -> dict[str, int]:
    """{"turns": assistant messages, "with": those of them that have reasoning}."""
    reasons = [bool(message.get("reasoning")) for message in messages if message["role"] == "assistant"]
    return {"turns": len(reasons), "with": sum(reasons)}
