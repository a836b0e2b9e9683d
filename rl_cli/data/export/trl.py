"""Rows as TRL's conversational examples: messages with the tools that were offered.

Checked with TRL 1.16 and the chat templates that it ships. A call's arguments are an object, because
templates write a text as a quoted text. What an assistant thought is `reasoning_content`, the name that most
templates read; others leave it out.
"""

from __future__ import annotations

from typing import Any

from rl_cli.core.messages import Message, ToolCall
from rl_cli.data.errors import Unconvertible
from rl_cli.data.strict_json import strict_json


def to_trl(row: dict[str, Any]) -> dict[str, Any]:
    """{"key", "messages", "tools"}; tools are null where none were offered, as templates expect it.

    Raises:
        Unconvertible: A call's arguments are no JSON object: no template could write them as the model did.
    """
    messages = [_message(message) for message in row["messages"]]
    return {"key": row.get("key"), "messages": messages, "tools": row["tools"] or None}


def _message(message: Message) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message["role"], "content": message["content"] or ""}
    if message.get("reasoning"):
        made["reasoning_content"] = message["reasoning"]
    if message.get("tool_calls"):
        made["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    if message["role"] == "tool":
        made["tool_call_id"], made["name"] = message["tool_call_id"], message["name"]
    return made


def _call(call: ToolCall) -> dict[str, Any]:
    function = call["function"]
    try:
        arguments = strict_json(function["arguments"])
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise Unconvertible("a call's arguments are no JSON object")
    return {**call, "function": {"name": function["name"], "arguments": arguments}}
