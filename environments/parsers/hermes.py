"""Hermes form: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, before it `<think>...</think>`.

Not covered yet: what other families write, streaming, repair of broken JSON.
"""

from __future__ import annotations

import json

from environments.parsers.base import Parsed, ParsedCall, ParseError

OPEN, CLOSE = "<tool_call>", "</tool_call>"
THINK, END_THINK = "<think>", "</think>"
_DECODER = json.JSONDecoder()


def parse(text: str) -> Parsed:
    """Splits a completion (without its stop token) into reasoning, content and calls, in one pass."""
    reasoning, start = _reasoning(text)
    parsed, kept = Parsed(None, reasoning), []
    while (at := text.find(OPEN, start)) >= 0:
        kept.append(text[start:at])
        call, start = _read_call(text, at)
        if isinstance(call, ParsedCall):
            parsed.calls.append(call)
        else:
            parsed.errors.append(call)
            kept.append(text[at:start])
    kept.append(text[start:])
    parsed.content = "".join(kept).strip() or None
    return parsed


def _reasoning(text: str) -> tuple[str | None, int]:
    """Reasoning, and where the rest begins. A template may have opened the block in the prompt."""
    end = text.find(END_THINK)
    if end < 0:
        return None, 0
    start = text.find(THINK, 0, end)
    if start >= 0 and text[:start].strip():
        return None, 0
    begin = start + len(THINK) if start >= 0 else 0
    return text[begin:end].strip() or None, end + len(END_THINK)


def _read_call(text: str, at: int) -> tuple[ParsedCall | ParseError, int]:
    """The call that begins at `at`, or why it cannot be read, and where reading goes on."""
    begin = at + len(OPEN)
    while begin < len(text) and text[begin].isspace():
        begin += 1
    close = text.find(CLOSE, begin)
    after = close + len(CLOSE) if close >= 0 else len(text)
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        reason = "the call is not closed" if close < 0 else f"the call is not JSON: {error}"
        return ParseError(at, reason), after
    close = text.find(CLOSE, end)
    if close < 0 or text[end:close].strip():
        return ParseError(at, "the call is not closed" if close < 0 else "text after the call's JSON"), after
    after = close + len(CLOSE)
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        return ParseError(at, "the call has no name"), after
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        return ParsedCall(value["name"], arguments), after
    if not isinstance(arguments, dict | None):
        return ParseError(at, "the call's arguments are not an object"), after
    return ParsedCall(value["name"], json.dumps(arguments or {}, ensure_ascii=False)), after
