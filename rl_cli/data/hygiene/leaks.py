"""Where a row holds secrets or personal data: the places, never the text."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from rl_cli.core.redaction import MASK
from rl_cli.core.secret_patterns import is_secret_field
from rl_cli.core.secret_search import spans_of
from rl_cli.data.hygiene.pii import Found, PiiKind, pii_in

SECRET = "secret"


@dataclass(frozen=True)
class Leak:
    kind: str
    """`secret`, or a kind of personal data."""
    place: str
    """As in `messages[3].content`."""
    first: int
    """Its first character in the text there."""
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
            where = f"{place}.{_shown(key, pii)}" if place else _shown(key, pii)
            if found_in(key, pii):
                yield from _leaks(key, pii, f"the name of {where}")
            if isinstance(inner, str) and is_secret_field(key, inner) and inner != MASK:
                yield Leak(SECRET, where, 0, len(inner))
            else:
                yield from leaks_in(inner, pii, where)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from leaks_in(inner, pii, f"{place}[{number}]")
    elif (text := as_text(value)) is not None:
        yield from _leaks(text, pii, place)


def found_in(text: str, pii: Collection[PiiKind]) -> list[Found]:
    """Secrets and personal data in a text, in order, without overlap."""
    found = [Found(*span, SECRET) for span in spans_of(text) if not _is_masked(text, span)]
    covered = [(one.first, one.end) for one in found]
    for one in pii_in(text, pii) if pii else ():
        if all(one.end <= first or one.first >= end for first, end in covered):
            found.append(one)
    return sorted(found)


def as_text(value: Any) -> str | None:
    """A text, or a whole number as it is written: a card's may stand so. None for others."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int and abs(value) >= 10**11 else None


def _leaks(text: str, pii: Collection[PiiKind], place: str) -> Iterator[Leak]:
    for first, end, kind in found_in(text, pii):
        yield Leak(kind, place, first, end)


def _is_masked(text: str, span: tuple[int, int]) -> bool:
    return text[span[0] : span[1]] in MASK


def _shown(key: str, pii: Collection[PiiKind]) -> str:
    """A field's name for a place; a name that leaks is not told."""
    if found_in(key, pii):
        return MASK
    return key if key.isidentifier() else json.dumps(key[:40])
