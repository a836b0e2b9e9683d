"""What a line of a session file must be to be taken in: each kind of event, mended or left out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from rl_cli.agent.digest import sound_digest
from rl_cli.core.json_text import repair_surrogates, to_json
from rl_cli.core.messages import Message, ToolCall

Event = dict[str, Any]
DEEPEST = 50
"""Levels of a value that is taken in; nothing of ours has as many."""
LONGEST = 1e9
"""Seconds of a call that can be believed."""
NAMELESS = "call"
"""The id of a call that has none."""
STATE = {"run_id": str, "batch": str, "inference_test": str, "base_url": str, "seed": int, "draft": dict}
"""Keys of the state whose values somebody relies on."""


def sound_event(event: Event) -> Event | None:
    """The event with nothing in it that a reader would stumble over; None where nothing is left of it.

    A sound event stays as it is. Kinds that are not known are left to their readers.
    """
    event = {key: value for key, value in event.items() if _has_levels(value, DEEPEST)}
    kind = event.get("kind")
    mend = _KINDS.get(kind) if isinstance(kind, str) else None
    return mend(event) if mend else event


def sound_message(message: Any) -> Message | None:
    """A message of the person or the model that every endpoint takes; None where it is none."""
    if not isinstance(message, dict):
        return None
    role, content = message.get("role"), message.get("content")
    if role == "user":
        return {"role": "user", "content": _text(content)} if isinstance(content, str) and content else None
    calls = message.get("tool_calls")
    if role != "assistant" or not isinstance(content, str | None) or not isinstance(calls, list | None):
        return None
    sound: Message = {"role": "assistant", "content": None if content is None else _text(content)}
    if isinstance(message.get("reasoning"), str):
        sound["reasoning"] = _text(message["reasoning"])
    if calls:
        read = [sound_call(call) for call in calls]
        kept = [call for call in read if call is not None]
        if len(kept) < len(calls):
            return None
        sound["tool_calls"] = kept
    elif not (content or "").strip():  # endpoints refuse a conversation with empty messages
        return None
    if (state := _provider_state(message.get("provider_state"))) is not None:
        sound["provider_state"] = state
    return sound


def sound_call(call: Any) -> ToolCall | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(call.get("id"), str):
        return None
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not isinstance(arguments, str):
        return None
    return {
        "id": _text(call["id"]) or NAMELESS,
        "type": "function",
        "function": {"name": _text(name), "arguments": _text(arguments)},
    }


def is_json_object(text: str) -> bool:
    """As every tool's result is."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _session(event: Event) -> Event:
    return {**event, **{key: _text(event.get(key)) for key in ("id", "model", "time")}}


def _model(event: Event) -> Event | None:
    return {**event, "model": _text(event["model"])} if _text(event.get("model")) else None


def _system(event: Event) -> Event | None:
    return {**event, "content": _text(event["content"])} if isinstance(event.get("content"), str) else None


def _message(event: Event) -> Event | None:
    message = sound_message(event.get("message"))
    if message is None:
        return None
    who: Event = {key: _text(event[key]) or None for key in ("model", "base_url") if key in event}
    return {**event, **who, "message": message}


def _call(event: Event) -> Event | None:
    call = sound_call(event.get("call"))
    return None if call is None else {**event, "call": call}


def _result(event: Event) -> Event | None:
    if not isinstance(event.get("call_id"), str) or not isinstance(event.get("content"), str):
        return None
    seconds = event.get("seconds")
    known = isinstance(seconds, int | float) and 0 <= seconds < LONGEST
    return {
        **event,
        "call_id": _text(event["call_id"]) or NAMELESS,
        "name": _text(event.get("name")),
        "content": _text(event["content"]),
        "seconds": seconds if known else 0.0,
    }


def _state(event: Event) -> Event | None:
    if not isinstance(event.get("state"), dict):
        return None
    state = {_text(key): _plain(value) for key, value in event["state"].items()}
    return {**event, "state": {key: value for key, value in state.items() if _is_usable(key, value)}}


def _compaction(event: Event) -> Event | None:
    if not isinstance(event.get("kept"), list):
        return None
    kept = [_kept(message) for message in event["kept"]]
    return {
        **event,
        "summary": _text(event.get("summary")),
        "digest": sound_digest(event.get("digest")),
        "kept": [message for message in kept if message is not None],
    }


def _kept(message: Any) -> Message | None:
    if not isinstance(message, dict) or message.get("role") != "tool":
        return sound_message(message)
    result = _result({"call_id": message.get("tool_call_id"), "content": message.get("content")})
    if result is None:
        return None
    answer: Message = {"role": "tool", "content": result["content"], "tool_call_id": result["call_id"]}
    return {**answer, "name": _text(message["name"])} if "name" in message else answer


def _said(*keys: str) -> Callable[[Event], Event]:
    def mend(event: Event) -> Event:
        return {**event, **{key: _text(event.get(key)) or None for key in keys}}

    return mend


_KINDS: dict[str, Callable[[Event], Event | None]] = {
    "session": _session,
    "model": _model,
    "system": _system,
    "message": _message,
    "partial": lambda event: event | {"text": _text(event["text"])} if _text(event.get("text")) else None,
    "call": _call,
    "result": _result,
    "state": _state,
    "compaction": _compaction,
    "notice": lambda event: event | {"text": _text(event["text"])} if _text(event.get("text")) else None,
    "end": _said("stop", "error"),
}


def _text(value: Any) -> str:
    return repair_surrogates(value) if isinstance(value, str) else ""


def _plain(value: Any) -> Any:
    """The value as JSON that can be written and sent: without NaN and halves of characters."""
    return json.loads(to_json(value))


def _has_levels(value: Any, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most > 0 and all(_has_levels(part, most - 1) for part in inner)


def _is_usable(key: str, value: Any) -> bool:
    kind = STATE.get(key)
    if kind is None or value is None:
        return True
    if kind is dict:
        return isinstance(value, dict) and all(isinstance(value.get(k), dict) for k in ("config", "original"))
    return isinstance(value, kind) and isinstance(value, bool) == (kind is bool)


def _provider_state(state: Any) -> dict[str, Any] | None:
    """What an endpoint wants back; none of it where a part has not the form that its policy gives it."""
    if not isinstance(state, dict) or not all(isinstance(part, dict) for part in state.values()):
        return None
    state = _plain(state)
    blocks = state.get("anthropic", {}).get("content", [])
    extra = state.get("openai", {}).get("extra_content", {})
    used = state.get("scripted", {}).get("used", [])
    sound = isinstance(blocks, list) and all(map(_is_block, blocks)) and isinstance(extra, dict)
    return state if sound and isinstance(used, list) and all(type(i) is int for i in used) else None


def _is_block(block: Any) -> bool:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        return False
    needed = {"text": ("text",), "tool_use": ("id", "name")}.get(block["type"], ())
    return all(isinstance(block.get(key), str) for key in needed)
