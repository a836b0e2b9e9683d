"""Calls whose JSON a server returned as content, without any mark, in a code fence or not.

Content that merely mentions JSON stays content: all of it must be calls of offered tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from environments.parsers.base import ParsedCall

_FENCE = re.compile(r"```(?:json|tool_call|tool_code)?[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_PYTHON_TAG = "<|python_tag|>"
_DECODER = json.JSONDecoder()


def bare_calls(content: str, offered: Collection[str]) -> list[ParsedCall]:
    """The calls, where the whole content is one or several calls of offered tools; else nothing."""
    text = content.strip().removeprefix(_PYTHON_TAG).strip()
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1].strip()
    if not text.startswith(("{", "[")):
        return []
    values: list[Any] = []
    at = 0
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        values += value if isinstance(value, list) else [value]
        while at < len(text) and text[at] in " \t\r\n;,":
            at += 1
    calls = [_call(value, offered) for value in values]
    return [call for call in calls if call] if all(calls) else []


def _call(value: Any, offered: Collection[str]) -> ParsedCall | None:
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = value.get("name")
    if not isinstance(name, str) or name not in offered:
        return None
    if not set(value) <= {"name", "arguments", "parameters", "id", "type"}:
        return None
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        return ParsedCall(name, arguments)
    if arguments is None and not {"arguments", "parameters"} & set(value):
        return None  # {"name": "..."} alone may be anything
    if not isinstance(arguments, dict | None):
        return None
    return ParsedCall(name, json.dumps(arguments or {}, ensure_ascii=False))
