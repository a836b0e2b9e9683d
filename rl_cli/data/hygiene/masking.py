"""Secrets and personal data of rows masked, and counted by kind.

A secret becomes `[redacted]`, personal data its kind, as `[email]`. In text that is a JSON list or object,
as arguments are, the values are masked: it stays one. Secrets that its escapes hide are found too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from rl_cli.core.json_text import to_json
from rl_cli.core.redaction import MASK, free_name, redact
from rl_cli.data.hygiene.leaks import SECRET, as_text, json_in, spelt_out
from rl_cli.data.hygiene.pii import PiiKind, pii_in


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
        result: dict[str, Any] = self._value(self._without_secrets(row))
        return result

    def _without_secrets(self, value: Any) -> Any:
        made = redact(value) if self._secrets else value
        if made is not value:
            self.counts[SECRET] += max(1, _masks(made) - _masks(value))
        return made

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, list):
            listed = [self._value(inner) for inner in value]
            return value if all(a is b for a, b in zip(value, listed, strict=True)) else listed
        text = as_text(value)
        return value if text is None else self._text(text) or value

    def _fields(self, value: dict[str, Any]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        same = True
        for key, inner in value.items():
            name, content = self._value(key), self._value(inner)
            same = same and name is key and content is inner
            fields[free_name(name, fields) if name is not key else key] = content
        return value if same else fields

    def _text(self, text: str) -> str | None:
        """The text with masks; None where there is nothing to mask."""
        hidden = self._secrets and spelt_out(text)
        if not hidden and not self._pii:
            return None
        if (value := json_in(text)) is not None:
            masked = self._value(self._without_secrets(value) if hidden else value)
            return to_json(masked) if masked is not value else None
        parts, at = [], 0
        for first, end, kind in pii_in(text, self._pii):
            parts += [text[at:first], f"[{kind}]"]
            at = end
            self.counts[kind] += 1
        return "".join([*parts, text[at:]]) if parts else None


def _masks(value: Any) -> int:
    return to_json(value).count(MASK)
