"""Secrets taken out of all that is written or shown.

Masked are the values of the environment's secret variables (see `secret_values`) and what looks like a secret
(see `secret_patterns`), each as `[redacted]`. Hashes, ids, paths and prose stay. Own code, because libraries
(detect-secrets, scrubadub) find lines in files by slower and looser rules, and neither mask nor stream.
Not covered: secrets that are encrypted, compressed, or encoded in other ways than those named there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any, TextIO, cast

from rl_cli.core import secret_search
from rl_cli.core.json_text import plain, to_json
from rl_cli.core.secret_patterns import is_secret_field
from rl_cli.core.secret_search import CONTEXT, LONGEST_HELD, MASK, Span, settled, spans_of
from rl_cli.core.secret_values import SHORTEST

__all__ = [
    "MASK",
    "StreamRedactor",
    "forget",
    "free_name",
    "redact",
    "redact_stream",
    "redact_text",
    "redacted_json",
    "remember",
]

_HARMLESS = frozenset({int, float, bool, type(None)})
_PLAIN = _HARMLESS | {str}


def forget() -> None:
    """The environment is read anew at the next use, and what `remember` was told is forgotten."""
    secret_search.forget()
    _short.cache_clear()


def remember(value: str) -> None:
    """From now on `value` is a secret too, unless it is too short or too plain to be told from other text."""
    secret_search.remember(value)
    _short.cache_clear()


def redact_text(text: str) -> str:
    """`text` with its secrets masked; doing it again changes nothing."""
    if len(text) < SHORTEST:
        return text
    masked = _short(text) if len(text) <= 100 else _redacted(text)
    return text if masked == text else masked


def redact(value: Any) -> Any:
    """`value` with the strings in its dicts, lists and tuples redacted, keys too.

    Returns:
        The same object if there was nothing to mask.

    Raises:
        RecursionError: `value` is nested too deeply, or contains itself.
    """
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return _fields(value)
    if isinstance(value, list | tuple):
        items = [redact(item) for item in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else items if isinstance(value, list) else tuple(items)
    return value


def redacted_json(value: Any, indent: int | None = None) -> str:
    """JSON text of `value` (see `to_json`) without its secrets; always valid, and of the same structure."""
    return to_json(_for_json(value), indent)


class StreamRedactor:
    """Masks text that comes in pieces. What may be the beginning of a secret waits for the next piece.

    Args:
        at_once: For a person who reads along: two letters do not wait, for they begin many a word. A secret
            may then be shown as `sk[redacted]`.
    """

    def __init__(self, at_once: bool = False) -> None:
        self._at_once = at_once
        self._before = ""
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now."""
        return self._show(piece, last=False)

    def flush(self) -> str:
        """The rest: nothing more comes."""
        return self._show("", last=True)

    def _show(self, piece: str, last: bool) -> str:
        start = len(self._before)
        text = self._before + self._held + piece
        unseen = 16 if start == CONTEXT else 0  # what stood before these may have decided otherwise
        spans = [
            (max(first, start), until) for first, until in spans_of(text) if until > start and first >= unseen
        ]
        end = len(text) if last else settled(text, start, self._at_once)
        if len(text) - end > LONGEST_HELD:
            end = len(text)
        end = min([end, *(first for first, until in spans if first < end < until)])
        shown = _masked(text[:end], [span for span in spans if span[1] <= end])[start:]
        self._before, self._held = text[max(0, end - CONTEXT) : end], text[end:]
        return shown


def redact_stream(stream: TextIO) -> TextIO:
    """A stream that writes to `stream` without secrets, also without those that come in pieces.

    At the end of the process, what was held back as the possible beginning of a secret is written too.
    """
    import atexit

    wrapped = _RedactedStream(stream)
    atexit.register(wrapped.release)
    return cast(TextIO, wrapped)


class _RedactedStream:
    """Masks what is written to a text stream; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._redactor = StreamRedactor()
        self._lock = threading.RLock()

    def write(self, text: str) -> int:
        with self._lock:
            self._stream.write(self._redactor.feed(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def release(self) -> None:
        """Writes what was held back: nothing more comes."""
        with self._lock, suppress(OSError, ValueError):  # its reader has left, or it is closed
            self._stream.write(self._redactor.flush())
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _redacted(text: str) -> str:
    spans = spans_of(text)
    return _masked(text, spans) if spans else text


_short = lru_cache(2048)(_redacted)


def _fields(value: dict[Any, Any]) -> dict[Any, Any]:
    same = True
    fields: dict[Any, Any] = {}
    for key, held in value.items():
        name, content = key, held
        if isinstance(key, str):
            name = redact_text(key)
            if isinstance(held, str) and is_secret_field(key, held):
                content = MASK
        if content is held and type(held) not in _HARMLESS:
            content = redact(held)
        same = same and name is key and content is held
        fields[free_name(name, fields) if name is not key else key] = content
    return value if same else fields


def free_name(name: str, taken: Mapping[Any, Any]) -> str:
    """Two keys that were masked stay two."""
    if name not in taken:
        return name
    return next(free for i in count(2) if (free := f"{name} {i}") not in taken)


def _for_json(value: Any) -> Any:
    """As `redact`, with what JSON does not know as what it stands for."""
    if type(value) in _HARMLESS or isinstance(value, str):
        return redact(value)
    simple = plain(value) if not _is_plain(value) else value
    return redact(simple)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(v) in _PLAIN or _is_plain(v) for v in value.values())
    if isinstance(value, list | tuple):
        return all(type(v) in _PLAIN or _is_plain(v) for v in value)
    return type(value) in _PLAIN


def _masked(text: str, spans: list[Span]) -> str:
    parts, at = [], 0
    for first, last in spans:
        parts += [text[at:first], MASK]
        at = last
    return "".join([*parts, text[at:]])
