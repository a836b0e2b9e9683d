"""The fields of an input row, checked: prompt or messages, image, cwd, toolsets, n, metadata."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage
from rl_cli.core.json_text import load_json, plain, repair_surrogates
from rl_cli.core.messages import Message, user
from rl_cli.data.canonical import canonical
from rl_cli.data.errors import Unconvertible

FIELDS = ("prompt", "messages", "image", "cwd", "toolsets", "n", "metadata")
MOST_SAMPLES = 10_000


class BadRow(Exception):
    """Why a row cannot be used, in one line."""


def messages_of(row: dict[str, Any]) -> list[Message]:
    """What is asked, canonical. A number as prompt is asked as JSON writes it: 17 as "17"."""
    prompt, messages = row.get("prompt"), read_field(row, "messages")
    if messages is not None and prompt is not None:
        raise BadRow("it has both prompt and messages")
    if messages is not None:
        return _conversation(messages)
    if prompt is None:
        raise BadRow(f"it has neither prompt nor messages; {_fields_of(row)}")
    if isinstance(prompt, int | float) and not isinstance(prompt, bool) and math.isfinite(prompt):
        prompt = str(plain(prompt))
    if not isinstance(prompt, str):
        raise BadRow("prompt is neither text nor a number")
    if not prompt.strip():
        raise BadRow("prompt is empty")
    return [user(repair_surrogates(prompt))]


def text_of(row: dict[str, Any], name: str) -> str | None:
    """A field that is text; None where it is missing or empty."""
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRow(f"{name} is no text")
    return repair_surrogates(value) if value else None


def toolsets_of(row: dict[str, Any], members: Callable[[str], tuple[str, ...]]) -> tuple[str, ...] | None:
    """The row's own toolsets, sorted, given as a list of names or as text with commas between them.

    Args:
        members: The toolsets that a name stands for; BadUsage where it stands for none.
    """
    given = row.get("toolsets")
    if isinstance(given, str):
        given = read_field(row, "toolsets") if given.lstrip().startswith("[") else given.split(",")
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise BadRow("toolsets is no list of names")
    try:
        return tuple(sorted({part for name in given if name.strip() for part in members(name.strip())}))
    except BadUsage as error:
        raise BadRow(str(error)) from None


def samples_of(row: dict[str, Any]) -> int | None:
    """How many samples are wanted, by the field `n`; None where it is missing."""
    given = row.get("n")
    if isinstance(given, str) and given.strip().isascii() and given.strip().isdigit() and len(given) < 20:
        given = int(given)  # a table holds text
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if given is not None and (type(given) is not int or not 1 <= given <= MOST_SAMPLES):
        raise BadRow(f"n is no whole number from 1 to {MOST_SAMPLES}")
    return given


def metadata_of(row: dict[str, Any]) -> dict[str, Any]:
    """The row's metadata, and beside it the fields that mean nothing here."""
    given = read_field(row, "metadata")
    if given is not None and not isinstance(given, dict):
        raise BadRow("metadata is no object")
    others = {name: value for name, value in row.items() if name not in FIELDS}
    found: dict[str, Any] = plain(others | (given or {}))
    return found


def read_field(row: dict[str, Any], name: str) -> Any:
    """A field that is not text; a table holds it as JSON text."""
    value = row.get(name)
    if not isinstance(value, str):
        return value
    try:
        return load_json(value)
    except ValueError:
        raise BadRow(f"{name} is text, and no JSON") from None


def _fields_of(row: dict[str, Any]) -> str:
    """What a row has instead, for whoever has to rename a field."""
    return f"its fields are {one_line(', '.join(map(str, row)), 120)}" if row else "it has no fields"


def _conversation(messages: Any) -> list[Message]:
    try:
        conversation = canonical(messages)
    except Unconvertible as reason:
        raise BadRow(f"messages cannot be read: {reason}") from None
    if conversation.messages[-1]["role"] not in ("user", "tool"):
        raise BadRow("messages end with none of a person or a tool: nothing is asked")
    last = conversation.messages[-1]
    if last["role"] == "user" and not (last["content"] or "").strip():
        raise BadRow("messages end with an empty one: nothing is asked")
    if "unanswered_call" in conversation.marks:
        raise BadRow("messages have a call without its result")
    return conversation.messages
