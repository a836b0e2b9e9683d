"""Rows as lines of JSON of which `datasets` makes the same columns whatever they hold.

Its reader settles the columns by the first 10 MB of a file, and fails where a later line differs: an empty
list or a null is a column of nothing, objects that share their keys are a struct. So each line says what the
columns are: a text is "" where there is none; `tools` and `system_messages` are JSON text, which TRL reads.
`messages` become Json, each with keys of its own, once two of them differ in their keys: where those of the
first line do not, its first message gets a `name` of null.
Not covered: a first line of more than 10 MB with one message; keys that all read as a date.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rl_cli.core.json_text import to_json
from rl_cli.data.errors import Unconvertible
from rl_cli.data.export.loadable_json import TOO_LARGE
from rl_cli.data.export.schema import Columns, checked

MESSAGES = "messages"
WHOLE = range(-(2**63), 2**64)
"""What the reader takes for a whole number."""


def as_line(row: dict[str, Any], columns: Columns, first: bool) -> dict[str, Any]:
    """A row as its line says it.

    Args:
        row: With values for these columns.
        columns: Of the kinds text, turns and jsons.
        first: It is the first line of the file.

    Raises:
        Unconvertible: A value is not of its column's kind, or a number is too large for the reader.
    """
    line: dict[str, Any] = {}
    for name, kind in columns.items():
        value = checked(name, row.get(name), kind)
        if name == MESSAGES:
            _require_loadable(value)
            line[name] = _unlike(value) if first else value
        elif kind == "jsons":
            line[name] = to_json(value)
        else:
            line[name] = "" if value is None else value
    return line


def _unlike(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of which not all have the same keys, or one that has a key that plain ones lack."""
    if len({frozenset(message) for message in messages}) > 1:
        return messages
    return [{**messages[0], "name": None}, *messages[1:]]


def _require_loadable(value: Any) -> None:
    if any(type(leaf) is int and leaf not in WHOLE for leaf in _leaves(value)):
        raise Unconvertible(TOO_LARGE)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        yield value
        return
    for inner in value:
        yield from _leaves(inner)
