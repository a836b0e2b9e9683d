"""Secrets and personal data of rows masked, and counted by kind.

A secret becomes `[redacted]`, personal data its kind, as `[email]`. Text that was JSON stays JSON.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from rl_cli.core.json_text import to_json
from rl_cli.core.redaction import MASK, free_name, redact
from rl_cli.data.hygiene.leaks import SECRET, as_text
from rl_cli.data.hygiene.pii import Found, PiiKind, pii_in


class Masker:
    """Masks rows; masking a row again changes nothing.

    Args:
        secrets: Mask secrets (rl_cli/core/redaction.py says which).
        pii: The kinds of personal data to mask.
    """

    def __init__(self, secrets: bool = True, pii: Collection[PiiKind] = ()) -> None:
        self._secrets, self._pii = secrets, pii
        self.counts: Counter[str] = Counter()
        """Kind -> how many were masked so far."""

    def masked(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row without them; the same object where there are none."""
        made = redact(row) if self._secrets else row
        if made is not row:
            self.counts[SECRET] += max(1, _masks(made) - _masks(row))
        result: dict[str, Any] = self._value(made) if self._pii else made
        return result

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, list):
            listed = [self._value(inner) for inner in value]
            return value if all(a is b for a, b in zip(value, listed, strict=True)) else listed
        text = as_text(value)
        return value if text is None or not (found := pii_in(text, self._pii)) else self._text(text, found)

    def _fields(self, value: dict[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        same = True
        for key, inner in value.items():
            name, content = self._value(key), self._value(inner)
            same = same and name is key and content is inner
            fields[free_name(name, fields) if name is not key else key] = content
        return value if same else fields

    def _text(self, text: str, found: list[Found]) -> str:
        parts, at = [], 0
        for first, end, kind in found:
            parts += [text[at:first], f"[{kind}]"]
            at = end
        masked = "".join([*parts, text[at:]])
        value = _json_of(text)
        if value is not None and _json_of(masked) is None:  # a number of it was masked
            text = to_json(self._value(value))
            return self._text(text, found) if (found := pii_in(text, self._pii)) else text
        self.counts.update(kind for _, _, kind in found)
        return masked


def _masks(value: Any) -> int:
    return to_json(value).count(MASK)


def _json_of(text: str) -> Any:
    """The list or object that a text is; else None."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
