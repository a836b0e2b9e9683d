"""Secrets taken out of all that is written or shown.

Masked are the values of the environment's secret variables (see `secret_values`) and what looks like a secret
(see `secret_patterns`), each as `[redacted]`. Hashes, ids, paths and prose stay. Own code, because libraries
(detect-secrets, scrubadub) find lines in files by slower and looser rules, and neither mask nor stream.
Not covered: secrets that are encrypted, compressed, or encoded in other ways than those named there.
"""

from __future__ import annotations

import io
import threading
from typing import Any, TextIO, cast

from rl_cli.core.json_text import plain, to_json
from rl_cli.core.secret_patterns import is_assigned_secret
from rl_cli.core.secret_search import CONTEXT, LONGEST_HELD, Span, forget, remember, settled, spans_of

__all__ = [
    "MASK",
    "StreamRedactor",
    "forget",
    "redact",
    "redact_stream",
    "redact_text",
    "redacted_json",
    "remember",
]

MASK = "[redacted]"


def redact_text(text: str) -> str:
    """`text` with its secrets masked; doing it again changes nothing."""
    for _ in range(4):  # a mask may uncover another secret's beginning
        spans = spans_of(text)
        if not spans:
            break
        masked = _mask(text, spans)
        if masked == text:
            break
        text = masked
    return text


def redact(value: Any) -> Any:
    """`value` with the strings in its dicts, lists and tuples redacted, keys too.

    Returns:
        The same object if there was nothing to mask.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        fields = [(redact(k), _field(k, v)) for k, v in value.items()]
        same = all(a is k and b is v for (a, b), (k, v) in zip(fields, value.items(), strict=True))
        return value if same else dict(_distinct(fields))
    if isinstance(value, list | tuple):
        items = [redact(item) for item in value]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        return items if isinstance(value, list) else tuple(items)
    return value


def redacted_json(value: Any, indent: int | None = None) -> str:
    """JSON text of `value` (see `to_json`) without its secrets; always valid JSON of the same structure."""
    text = to_json(value, indent)
    return to_json(redact(plain(value)), indent) if spans_of(text) else text


class StreamRedactor:
    """Masks text that comes in pieces. What may be the beginning of a secret waits for the next piece."""

    def __init__(self) -> None:
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        start = len(self._before)
        text = self._before + self._held + piece
        spans = [span for span in spans_of(text) if span[0] >= start]
        end = max(start, settled(text, start)) if len(text) - start < LONGEST_HELD else len(text)
        for first, last in reversed(spans):
            if first < end < last:
                end = first
        return self._release(text, start, end, [span for span in spans if span[1] <= end])

    def flush(self) -> str:
        """The rest: nothing more comes."""
        start = len(self._before)
        text = self._before + self._held
        return self._release(text, start, len(text), [span for span in spans_of(text) if span[0] >= start])

    def _release(self, text: str, start: int, end: int, spans: list[Span]) -> str:
        shown = _mask(text[:end], spans)[start:]
        self._held = text[end:]
        self._before = (self._before + shown)[-CONTEXT:]
        return shown


class _RedactedStream(io.TextIOBase):
    """A text stream that masks what is written to it; all else is the wrapped stream's."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redactor = StreamRedactor()
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        with self._lock:
            self._stream.write(self._redactor.feed(text))
        return len(text)

    def flush(self) -> None:
        """Hands on what is settled; the beginning of a secret is still held back."""
        self._stream.flush()

    def release(self) -> None:
        """Hands on what was held back: nothing more comes."""
        with self._lock:
            self._stream.write(self._redactor.flush())
        self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def redact_stream(stream: TextIO) -> TextIO:
    """A stream that writes to `stream` without its secrets, also those that come in pieces.

    At the end of the process, what was held back as the possible beginning of a secret is written too.
    """
    import atexit

    wrapped = _RedactedStream(stream)
    atexit.register(wrapped.release)
    return cast(TextIO, wrapped)


def _field(name: Any, value: Any) -> Any:
    if isinstance(name, str) and isinstance(value, str) and is_assigned_secret(name, value):
        return MASK
    return redact(value)


def _distinct(fields: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Two keys that were masked stay two."""
    seen: dict[Any, int] = {}
    distinct = []
    for key, value in fields:
        seen[key] = seen.get(key, 0) + 1
        distinct.append((key if seen[key] == 1 else f"{key} {seen[key]}", value))
    return distinct


def _mask(text: str, spans: list[Span]) -> str:
    parts, at = [], 0
    for first, last in spans:
        parts += [text[at:first], MASK]
        at = last
    return "".join([*parts, text[at:]])
