"""Where a row holds secrets or personal data: the places, never the text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from rl_cli.core.redaction import MASK
from rl_cli.core.secret_patterns import is_secret_field
from rl_cli.core.secret_search import spans_of
from rl_cli.data.hygiene.pii import PiiKind, pii_in
from rl_cli.data.strict_json import too_deep

SECRET = "secret"
DEEPEST = 32
"""Levels of a JSON text that is looked into; a deeper one is text."""
_SPELT_OUT = re.compile(r"\\u00[2-7][0-9a-fA-F]|\\/")
"""Letters that need no escape in JSON, and hide what stands there from who searches the text."""


@dataclass(frozen=True)
class Leak:
    kind: str
    """`secret`, or a kind of personal data."""
    place: str
    """As in `messages[3].content`; within JSON as text, `messages[2].content, as JSON: to`."""
    first: int
    """Its first character in the text there, from 0."""
    end: int


def leaks_in(value: Any, pii: Collection[PiiKind], place: str = "") -> Iterator[Leak]:
    """The leaks in a value from JSON, in its order. What is masked already is none.

    Args:
        value: A row, or a part of one.
        pii: The kinds of personal data to look for, besides secrets.
        place: Where the value stands.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            gap = "" if not place or place.endswith(" ") else "."
            where = f"{place}{gap}{_shown(key, pii)}"
            yield from leaks_in(key, pii, f"the name of {where}")
            if isinstance(inner, str) and is_secret_field(key, inner) and inner != MASK:
                yield Leak(SECRET, where, 0, len(inner))
            else:
                yield from leaks_in(inner, pii, where)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaks_in(inner, pii, f"{place}[{number}]")
    elif (text := as_text(value)) is not None:
        yield from _in_text(text, pii, place)


def _in_text(text: str, pii: Collection[PiiKind], place: str) -> Iterator[Leak]:
    secrets = [Leak(SECRET, place, first, end) for first, end in _secrets(text)]
    if (inner := json_in(text)) is None:
        yield from secrets
        yield from (Leak(kind, place, first, end) for first, end, kind in pii_in(text, pii))
        return
    found = list(leaks_in(inner, pii, f"{place}, as JSON: "))
    yield from secrets or (leak for leak in found if leak.kind == SECRET and spelt_out(text))
    yield from (leak for leak in found if leak.kind != SECRET)


def as_text(value: Any) -> str | None:
    """A text, or a whole number as it is written: a card's may stand so. None for others."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and abs(value) >= 10**11 else None


def json_in(text: str) -> Any:
    """The list or object that a text is; else None."""
    if text.lstrip()[:1] not in ("{", "[") or too_deep(text, DEEPEST):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def spelt_out(text: str) -> bool:
    """Whether a JSON text has escapes for letters that need none."""
    return _SPELT_OUT.search(text) is not None


def _secrets(text: str) -> list[tuple[int, int]]:
    return [(first, end) for first, end in spans_of(text) if text[first:end] not in MASK]


def _shown(key: str, pii: Collection[PiiKind]) -> str:
    """A field's name for a place; a name that leaks is not told."""
    if _secrets(key) or pii_in(key, pii):
        return MASK
    return key if key.isidentifier() else json.dumps(key[:40])
