"""What Messages demand of a request beyond its types."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

from tests.wire import anthropic_wire
from tests.wire.typed import problems

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
THINKING = ("thinking", "redacted_thinking")


def violations(
    body: dict[str, Any],
    served: dict[str, list[dict[str, Any]]],
    allowed: frozenset[str] = frozenset(),
) -> list[str]:
    """What is wrong with a request, one line each, types first.

    Args:
        served: The thinking blocks that this server sent together with each tool_use id.
        allowed: Fields that this server knows beyond Anthropic's.
    """
    from anthropic.types import message_create_params as params

    streamed = bool(body.get("stream"))
    kind = params.MessageCreateParamsStreaming if streamed else params.MessageCreateParamsNonStreaming
    if found := problems(body, kind, "", allowed):
        return found
    return [
        *_settings(body),
        *_tools(body),
        *_cache(body),
        *_messages(body["messages"]),
        *_calls(body["messages"]),
        *_thinking(body, served),
    ]


def _settings(body: dict[str, Any]) -> list[str]:
    found = []
    thinking = body.get("thinking", {"type": "disabled"})
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if body["max_tokens"] < 1:
        found.append("max_tokens: below 1")
    if temperature is not None and not 0 <= temperature <= 1:
        found.append("temperature: outside 0..1")
    if temperature is not None and top_p is not None:
        found.append("temperature and top_p cannot both be specified")
    if thinking["type"] == "enabled" and not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        found.append("thinking.budget_tokens: outside 1024..max_tokens")
    if thinking["type"] != "disabled":
        if temperature not in (None, 1):
            found.append("temperature may only be 1 when thinking is enabled")
        if top_p is not None and not 0.95 <= top_p <= 1:
            found.append("top_p must be within 0.95..1 when thinking is enabled")
        if body.get("tool_choice", {"type": "auto"})["type"] in ("any", "tool"):
            found.append("thinking may not be enabled when tool_choice forces tool use")
    return found


def _tools(body: dict[str, Any]) -> list[str]:
    names = [tool["name"] for tool in body.get("tools", [])]
    found = [f"tools: bad name {name!r}" for name in names if not _TOOL_NAME.fullmatch(name)]
    found += [f"tools: {name} given twice" for name in sorted({n for n in names if names.count(n) > 1})]
    found += [
        f"tools: input_schema of {tool['name']} is not of type object"
        for tool in body.get("tools", [])
        if "input_schema" in tool and tool["input_schema"].get("type") != "object"
    ]
    if "tool_choice" in body and not names:
        found.append("tool_choice may only be specified while providing tools")
    if not names and any(b["type"] in ("tool_use", "tool_result") for b in _blocks(body["messages"])):
        found.append("tools: required where messages hold tool_use or tool_result blocks")
    return found


def _cache(body: dict[str, Any]) -> list[str]:
    system = body.get("system", "")
    places = [
        *body.get("tools", []),
        *(system if isinstance(system, list) else ()),
        *_blocks(body["messages"]),
    ]
    inner = [part for block in places if isinstance(block.get("content"), list) for part in block["content"]]
    marked = [block for block in [*places, *inner] if block.get("cache_control")]
    found = []
    if len(marked) + bool(body.get("cache_control")) > 4:
        found.append(f"cache_control: {len(marked)} blocks, at most 4")
    if any(block.get("type") == "text" and not block["text"] for block in marked):
        found.append("cache_control cannot be set for empty text blocks")
    if any(block.get("type") in THINKING for block in marked):
        found.append("cache_control cannot be set for thinking blocks")
    return found


def _messages(messages: list[dict[str, Any]]) -> list[str]:
    found = []
    roles = [message["role"] for message in messages if message["role"] != "system"]
    if roles[:1] != ["user"]:
        found.append("messages: the first message must be the user's")
    if any(one == other for one, other in itertools.pairwise(roles)):
        found.append(f"messages: roles must alternate, got {roles}")
    for number, message in enumerate(messages):
        at, content = f"messages.{number}", message["content"]
        last = number == len(messages) - 1
        if not content and not (last and message["role"] == "assistant"):
            found.append(f"{at}: must have non-empty content")
        texts = [content] if isinstance(content, str) else [b["text"] for b in content if b["type"] == "text"]
        if any(not text.strip() for text in texts):
            found.append(f"{at}: text content blocks must contain non-whitespace text")
    if messages and messages[-1]["role"] == "assistant":
        found.append("messages: this model does not support assistant message prefill")
    return found


def _calls(messages: list[dict[str, Any]]) -> list[str]:
    """Every tool_use is answered first thing in the next message, every tool_result answers one."""
    found: list[str] = []
    seen: set[str] = set()
    open_ids: list[str] = []
    for number, message in enumerate([*messages, {"role": "end", "content": []}]):
        at, blocks = f"messages.{number}", _list(message["content"])
        results = [block for block in blocks if block["type"] == "tool_result"]
        answered = [block["tool_use_id"] for block in results]
        if sorted(answered) != sorted(open_ids):
            found.append(f"{at}: tool_result blocks answer {answered}, the calls before are {open_ids}")
        if blocks[: len(results)] != results:
            found.append(f"{at}: tool_result blocks must come first")
        for block in results:
            if any(
                part.get("type") == "text" and not part["text"].strip()
                for part in _list(block.get("content", []))
            ):
                found.append(f"{at}: text content blocks must be non-empty in a tool_result")
        open_ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if open_ids and message["role"] != "assistant":
            found.append(f"{at}: tool_use blocks can only be in assistant messages")
        if results and message["role"] != "user":
            found.append(f"{at}: tool_result blocks can only be in user messages")
        if len(set(open_ids)) < len(open_ids) or seen.intersection(open_ids):
            found.append(f"{at}: tool_use ids must be unique: {open_ids}")
        found += [f"{at}: bad tool_use id {i!r}" for i in open_ids if not _CALL_ID.fullmatch(i)]
        seen.update(open_ids)
    return found


def _thinking(body: dict[str, Any], served: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Thinking comes back unchanged, in its place, together with the calls it led to."""
    found = []
    thinks = body.get("thinking", {"type": "disabled"})["type"] != "disabled"
    for number, message in enumerate(body["messages"]):
        at, blocks = f"messages.{number}", _list(message["content"])
        thoughts = [block for block in blocks if block["type"] in THINKING]
        for block in thoughts:
            if block["type"] == "thinking" and block["signature"] != anthropic_wire.sign(block["thinking"]):
                found.append(f"{at}: invalid `signature` in `thinking` block")
            if block["type"] == "redacted_thinking" and not anthropic_wire.is_sealed(block["data"]):
                found.append(f"{at}: invalid `data` in `redacted_thinking` block")
        if thoughts and message["role"] != "assistant":
            found.append(f"{at}: thinking blocks can only be in assistant messages")
        if blocks and blocks[-1]["type"] in THINKING and message["role"] == "assistant":
            found.append(f"{at}: the final block in an assistant message cannot be thinking")
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        before = next((served[call] for call in calls if call in served), [])
        in_turn = all(_answers_only(later) for later in body["messages"][number + 1 :])
        if thinks and calls and in_turn and thoughts != before:
            found.append(f"{at}: thinking blocks of the latest turn were changed or left out")
    return found


def _answers_only(message: dict[str, Any]) -> bool:
    """Does the turn go on over this message: is it the model's, or tool results?"""
    return message["role"] == "assistant" or any(
        block["type"] == "tool_result" for block in _list(message["content"])
    )


def _blocks(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (block for message in messages for block in _list(message["content"]))


def _list(content: Any) -> list[dict[str, Any]]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
