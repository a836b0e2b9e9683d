"""The JSON in `<tool_call>` and `<tool_response>` blocks, written and read back character for character.

A call's `arguments` are an object, as the model wrote it; text where they are no valid object, so that a
reader can tell. A result's `content` is the object or array that its text is, else the text.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from rl_cli.data.markup import escape_json, unescape_json
from rl_cli.data.strict_json import refuse, repair_escapes, strict_json

_SPANS = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=refuse)
"""For finding where values end; their text is taken as it is."""
_SPACE = re.compile(r"[ \t\r\n]*")


class CallBlock(NamedTuple):
    name: str
    arguments: str
    id: str | None
    """Written only where the results do not tell it."""


class ResponseBlock(NamedTuple):
    id: str | None
    name: str
    content: str


def valid_arguments(text: str) -> bool:
    """Whether a call's arguments are a JSON object that every reader takes."""
    try:
        return isinstance(strict_json(text), dict)
    except (ValueError, RecursionError):
        return False


def write_call(block: CallBlock) -> str:
    arguments = escape_json(block.arguments) if valid_arguments(block.arguments) else _string(block.arguments)
    call_id = "" if block.id is None else f', "id": {_string(block.id)}'
    return f'{{"name": {_string(block.name)}, "arguments": {arguments}{call_id}}}'


def write_response(block: ResponseBlock) -> str:
    content = escape_json(block.content) if _is_structure(block.content) else _string(block.content)
    return (
        f'{{"tool_call_id": {_string(block.id or "")}, "name": {_string(block.name)}, "content": {content}}}'
    )


def read_call(text: str) -> CallBlock:
    """Raises ValueError: it is no call."""
    found = _members(text)
    arguments = found.get("arguments", "")
    if arguments.lstrip()[:1] not in ("{", '"') or "name" not in found:
        raise ValueError('a call has a "name" and "arguments"')
    return CallBlock(_text_of(found["name"]), _source(arguments), _id_of(found.get("id")))


def read_response(text: str) -> ResponseBlock:
    """Raises ValueError: it is no result."""
    found = _members(text)
    if "name" not in found or "content" not in found:
        raise ValueError('a result has a "name" and a "content"')
    return ResponseBlock(
        _id_of(found.get("tool_call_id")), _text_of(found["name"]), _source(found["content"])
    )


def _is_structure(content: str) -> bool:
    if content.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return False
    try:
        strict_json(content)
    except (ValueError, RecursionError):
        return False
    return unescape_json(escape_json(content)) == content


def _string(text: str) -> str:
    return escape_json(json.dumps(text, ensure_ascii=False))


def _source(value: str) -> str:
    """The text that was written as this JSON value."""
    begun = value.lstrip()[:1]
    if begun == '"':
        return _text_of(value)
    return unescape_json(value) if begun in ("{", "[") else value.strip().removeprefix("null")


def _text_of(value: str) -> str:
    text = json.loads(value)
    if not isinstance(text, str):
        raise ValueError(f"{value.strip()[:40]} is no text")
    return text


def _id_of(value: str | None) -> str | None:
    return None if value is None or value.strip() == "null" else _text_of(value) or None


def _members(text: str) -> dict[str, str]:
    """The members of a JSON object, their values as they are written, white space included.

    Raises:
        ValueError: It is no object, a name comes twice, or something stands around it.
    """
    text = repair_escapes(text)
    found: dict[str, str] = {}
    at = _pass(text, 0, "{")
    more = text[at : at + 1] != "}"
    while more:
        name, at = _SPANS.raw_decode(text, at)
        at = _pass(text, at, ":", space=False)
        begin = at + (text[at : at + 1] == " ")
        end = _space(text, _SPANS.raw_decode(text, _space(text, begin))[1])
        if not isinstance(name, str) or name in found:
            raise ValueError(f"{name!r} is there twice, or no name")
        found[name] = text[begin:end]
        more = text[end : end + 1] == ","
        at = _pass(text, end, ",") if more else end
    if _pass(text, at, "}") != len(text):
        raise ValueError("something follows the object")
    return found


def _pass(text: str, at: int, char: str, space: bool = True) -> int:
    at = _space(text, at)
    if text[at : at + 1] != char:
        raise ValueError(f"no {char} at character {at}")
    return _space(text, at + 1) if space else at + 1


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found
    return found.end()
