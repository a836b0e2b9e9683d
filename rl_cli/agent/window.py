"""How much of a model's context window a conversation takes, estimated without a tokenizer."""

from __future__ import annotations

import json
from typing import Any

from environments.policies.endpoints.token_estimate import ASCII_PER_TOKEN, request_tokens
from rl_cli.core.cuts import ends
from rl_cli.core.json_text import to_json
from rl_cli.core.messages import Message
from tools.results import as_text

MOST_FOR_THE_ANSWER = 8192
FULL = 0.85
"""Of the room for the conversation: above it, older turns are summarised before the next request."""
KEPT = 0.25
"""Of the same: the newest messages that are kept as they are."""
RESULT_SHARE = 8
"""No tool result is longer than this part of the window."""
LONGEST_RESULT = 40_000
SHORTEST_RESULT = 2_000
"""Characters; the second holds for the smallest window."""


def room(window: int) -> int:
    """Tokens of a window that the conversation may take; the rest is for the answer."""
    return window - min(MOST_FOR_THE_ANSWER, window // 4)


def is_full(messages: list[Message], tools: list[dict[str, Any]], window: int | None) -> bool:
    """Is it time to summarise?"""
    if window is None:
        return False
    return request_tokens(messages, tools) > FULL * room(window)


def result_limit(window: int | None) -> int:
    """The most characters of one tool result."""
    if window is None:
        return LONGEST_RESULT
    share = int(window / RESULT_SHARE * ASCII_PER_TOKEN)
    return max(SHORTEST_RESULT, min(LONGEST_RESULT, share))


def with_bounded_results(messages: list[Message], limit: int) -> list[Message]:
    """The messages, with tool results of at most about `limit` characters."""
    return [
        {**m, "content": shortened(m["content"] or "", limit)} if m["role"] == "tool" else m for m in messages
    ]


def shortened(content: str, limit: int) -> str:
    """A tool result with head and tail kept; where the whole of it lies is kept too."""
    if len(content) <= limit:
        return content
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return ends(content, limit)
    whole = value.pop("truncated", None)
    short = json.loads(as_text({"ok": True, **value}, limit, None, ""))
    return to_json({**short, "truncated": whole} if isinstance(whole, dict) else short)
