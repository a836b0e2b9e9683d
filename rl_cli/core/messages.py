"""Messages in OpenAI's chat form, as every part of the project passes them.

A message is a plain dict, so that it can be written to JSONL as it is. `provider_state` is the one opaque
key: what an endpoint wants back unchanged (signatures, token ids); it is never shown.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Role = Literal["system", "user", "assistant", "tool"]


class FunctionCall(TypedDict):
    name: str
    arguments: str
    """JSON text, as the model wrote it; it may be invalid."""


class ToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: FunctionCall


class Message(TypedDict):
    role: Role
    content: str | None
    reasoning: NotRequired[str]
    tool_calls: NotRequired[list[ToolCall]]
    tool_call_id: NotRequired[str]
    """On a tool message: the id of the call that it answers."""
    name: NotRequired[str]
    """On a tool message: the name of the tool."""
    provider_state: NotRequired[dict[str, Any]]


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str | None, tool_calls: list[ToolCall] | None = None) -> Message:
    message: Message = {"role": "assistant", "content": text}
    if tool_calls:
        message["tool_calls"] = tool_calls
    return message


def tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_result(call: ToolCall, content: str) -> Message:
    return {"role": "tool", "content": content, "tool_call_id": call["id"], "name": call["function"]["name"]}
