"""A conversation in our form -> system text plus the alternating turns of the Messages API.

Whatever happened to the conversation before, the turns are such as the API takes: user first and last, no
empty text, every call answered in the next turn before anything else, ids unique, names and arguments well
formed. A call that nobody answered gets a neutral answer; a result that nobody asked for is dropped.
"""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Any

from rl_cli.core.messages import Message, ToolCall

Block = dict[str, Any]
Turn = dict[str, Any]

PROVIDER = "anthropic"
"""Our key in a message's provider_state."""
THINKING = ("thinking", "redacted_thinking")
UNKNOWN_RESULT = json.dumps(
    {
        "ok": False,
        "error": {
            "type": "result_unknown",
            "message": "the result of this call is not known: the program ended before it was recorded. "
            "Check the state before repeating it.",
        },
    }
)
GO_ON = "Go on."
"""Stands where the API wants a user turn, and the person said nothing."""


def split_system(messages: list[Message]) -> tuple[str, list[Message]]:
    """The text of the system messages at the start, and the messages after them."""
    first = next((i for i, m in enumerate(messages) if m["role"] != "system"), len(messages))
    texts = [m["content"] for m in messages[:first] if (m["content"] or "").strip()]
    return "\n\n".join(text for text in texts if text), messages[first:]


def turns_of(messages: list[Message], origin: str, unsigned: bool) -> list[Turn]:
    """The turns to send. System messages in the middle become user text.

    Args:
        origin: `provider/model`; thinking that another one signed is not sent.
        unsigned: Whether thinking without a signature is sent back, too.
    """
    turns: list[Turn] = []
    ids = _Ids()
    waiting: list[tuple[str, str]] = []
    said = [m for m in messages if m["role"] in ("assistant", "tool") or (m["content"] or "").strip()]
    for own, run in groupby(said, key=lambda m: m["role"] == "assistant"):
        if own:
            for message in run:
                calls = [(call, ids.fresh(call["id"])) for call in message.get("tool_calls", [])]
                _add(turns, "assistant", _assistant_blocks(message, calls, origin, unsigned))
                waiting += [(call["id"], sent) for call, sent in calls]
        else:
            _add(turns, "user", _user_blocks(list(run), waiting))
            waiting = []
    _add(turns, "user", _user_blocks([], waiting))
    if not turns or turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [_text(GO_ON)]})
    if turns[-1]["role"] == "assistant":
        _add(turns, "user", [_text(GO_ON)])
    return turns


def continues_thinking(turns: list[Turn]) -> bool:
    """Whether the tool rounds that the last turn belongs to began with thinking (true where there are none).

    With a thinking budget the API refuses rounds that did not.
    """
    first = None
    for turn in reversed(turns):
        if turn["role"] == "assistant":
            first = turn
        elif not any(block["type"] == "tool_result" for block in turn["content"]):
            break
    return first is None or first["content"][0]["type"] in THINKING


class _Ids:
    """Ids as the API takes them: unique in the conversation, of letters, digits, `_` and `-`."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def fresh(self, asked: str) -> str:
        base = re.sub(r"[^a-zA-Z0-9_-]", "_", asked) or "call"
        name, number = base, 1
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name


def _add(turns: list[Turn], role: str, blocks: list[Block]) -> None:
    if blocks and turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    elif blocks:
        turns.append({"role": role, "content": blocks})


def _assistant_blocks(
    message: Message, calls: list[tuple[ToolCall, str]], origin: str, unsigned: bool
) -> list[Block]:
    uses = [_tool_use(call, sent) for call, sent in calls]
    kept = _kept_blocks(message, origin)
    if kept is None:
        text = message["content"] or ""
        return ([_text(text)] if text.strip() else []) + uses
    blocks: list[Block] = []
    for block in kept:
        if block["type"] == "tool_use":
            blocks.append(uses.pop(0))
        elif block["type"] == "text" and block["text"].strip():
            blocks.append(_text(block["text"]))
        elif block["type"] in THINKING and (unsigned or block.get("signature") or block.get("data")):
            blocks.append(dict(block))
    while blocks and blocks[-1]["type"] in THINKING:  # the token limit came while it thought
        blocks.pop()
    return blocks


def _kept_blocks(message: Message, origin: str) -> list[Block] | None:
    """The blocks as the endpoint sent them, where they came from it and still say what the message says."""
    state = (message.get("provider_state") or {}).get(PROVIDER) or {}
    blocks = state.get("content")
    if not blocks or state.get("origin") != origin or "[redacted]" in json.dumps(blocks):
        return None
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    uses = [block["id"] for block in blocks if block["type"] == "tool_use"]
    same = "".join("".join(texts).split()) == "".join((message["content"] or "").split())
    return blocks if same and uses == [call["id"] for call in message.get("tool_calls", [])] else None


def _user_blocks(messages: list[Message], waiting: list[tuple[str, str]]) -> list[Block]:
    """Answers to the calls of the turn before (ids as we know them, ids as sent), then what else was said."""
    results = [m for m in messages if m["role"] == "tool"]
    blocks = []
    for known, sent in waiting:
        at = next((i for i, m in enumerate(results) if m.get("tool_call_id") == known), None)
        content = UNKNOWN_RESULT if at is None else results.pop(at)["content"] or ""
        blocks.append(_tool_result(sent, content))
    return blocks + [_text(m["content"] or "") for m in messages if m["role"] != "tool"]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _tool_use(call: ToolCall, sent: str) -> Block:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call["function"]["name"])[:64] or "unknown"
    return {"type": "tool_use", "id": sent, "name": name, "input": _input(call["function"]["arguments"])}


def _input(arguments: str) -> dict[str, Any]:
    """The arguments as an object; empty where the model wrote something else (the call's result says so)."""
    try:
        value = json.loads(arguments)
    except (ValueError, TypeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _tool_result(sent: str, content: str) -> Block:
    block: Block = {"type": "tool_result", "tool_use_id": sent}
    if content.strip():
        block["content"] = content
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return block
    if isinstance(value, dict) and value.get("ok") is False:
        block["is_error"] = True
    return block
