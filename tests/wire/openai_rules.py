"""What Chat Completions demand of a request beyond its types."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.wire.typed import problems

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")


def violations(body: dict[str, Any], allowed: frozenset[str] = frozenset()) -> list[str]:
    """What is wrong with a request, one line each, types first.

    Args:
        allowed: Fields that this server knows beyond OpenAI's, such as `reasoning_content`.
    """
    from openai.types.chat import completion_create_params as params

    streamed = bool(body.get("stream"))
    kind = params.CompletionCreateParamsStreaming if streamed else params.CompletionCreateParamsNonStreaming
    # The SDK's tool message has no `name`; OpenAI takes it, and other servers need it.
    messages = [
        {k: v for k, v in message.items() if k != "name"} if message.get("role") == "tool" else message
        for message in body.get("messages", [])
        if isinstance(message, dict)
    ]
    found = problems({**body, "messages": messages}, kind, "", allowed)
    if found:
        return found
    return [*_settings(body), *_tools(body), *_messages(body["messages"])]


def _settings(body: dict[str, Any]) -> list[str]:
    found = []
    if not body["model"]:
        found.append("you must provide a model parameter")
    if body.get("stream_options") is not None and not body.get("stream"):
        found.append("stream_options is only allowed when stream is enabled")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        found.append("max_tokens and max_completion_tokens cannot both be set")
    if body.get("temperature") is not None and not 0 <= body["temperature"] <= 2:
        found.append("temperature: outside 0..2")
    if body.get("top_p") is not None and not 0 <= body["top_p"] <= 1:
        found.append("top_p: outside 0..1")
    for limit in ("max_tokens", "max_completion_tokens"):
        if body.get(limit) is not None and body[limit] < 1:
            found.append(f"{limit}: below 1")
    for choice in ("tool_choice", "parallel_tool_calls"):
        if choice in body and "tools" not in body:
            found.append(f"{choice} is only allowed when tools are specified")
    return found


def _tools(body: dict[str, Any]) -> list[str]:
    if "tools" not in body:
        return []
    functions = [tool["function"] for tool in body["tools"] if tool["type"] == "function"]
    found = ["tools: [] is too short"] if not body["tools"] else []
    found += [
        f"tools: bad name {function['name']!r}"
        for function in functions
        if not _TOOL_NAME.fullmatch(function["name"])
    ]
    found += [
        f"tools: the schema of {function['name']} is not of type object"
        for function in functions
        if function.get("parameters") and function["parameters"].get("type") != "object"
    ]
    names = [function["name"] for function in functions]
    return found + [f"tools: {name} given twice" for name in sorted({n for n in names if names.count(n) > 1})]


def _messages(messages: list[dict[str, Any]]) -> list[str]:
    """Every call is answered by a tool message directly after, every tool message answers a call."""
    found = [] if messages else ["messages: [] is too short"]
    open_ids: list[str] = []
    seen: set[str] = set()
    for number, message in enumerate([*messages, {"role": "end"}]):
        at = f"messages.{number}"
        if message["role"] == "tool":
            if message["tool_call_id"] in open_ids:
                open_ids.remove(message["tool_call_id"])
            else:
                found.append(f"{at}: tool message without a preceding call {message['tool_call_id']!r}")
            continue
        if open_ids:
            found.append(f"{at}: no tool message answers {', '.join(open_ids)}")
        open_ids = []
        if message["role"] == "assistant":
            open_ids = [call["id"] for call in message.get("tool_calls", [])]
            found += _assistant(message, at, seen)
            seen.update(open_ids)
        if "name" in message and not _SPEAKER.fullmatch(message["name"]):
            found.append(f"{at}.name: bad name {message['name']!r}")
    return found


def _assistant(message: dict[str, Any], at: str, seen: set[str]) -> list[str]:
    found = []
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        found.append(f"{at}.tool_calls: [] is too short")
    if message.get("content") is None and not calls and not message.get("function_call"):
        found.append(f"{at}.content: null without calls")
    ids = [call["id"] for call in calls or []]
    if not all(ids):
        found.append(f"{at}.tool_calls: an empty id")
    if len(set(ids)) < len(ids) or seen.intersection(ids):
        found.append(f"{at}.tool_calls: an id is used twice: {ids}")
    for call in calls or []:
        if call["type"] == "function" and not _TOOL_NAME.fullmatch(call["function"]["name"]):
            found.append(f"{at}.tool_calls: bad name {call['function']['name']!r}")
    return found


def unreadable_arguments(body: dict[str, Any]) -> list[str]:
    """Arguments of earlier calls that are no JSON object: OpenAI takes them, stricter servers answer 400."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls") or []]
    return [call["id"] for call in calls if not _is_object(call["function"]["arguments"])]


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
