"""The arguments of a call as JSON text, written while a grammar that is no JSON is read."""

from __future__ import annotations

import json

from environments.parsers.output import Output


class ArgumentsWriter:
    """Writes one object. A key that comes twice is written twice: whoever reads the JSON takes the last."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._empty = True

    def key(self, name: str) -> None:
        self._out.arguments(("{" if self._empty else ", ") + quoted(name) + ": ")
        self._empty = False

    def value(self, text: str) -> None:
        """A value that is JSON text."""
        self._out.arguments(text)

    def begin_text(self) -> None:
        self._out.arguments('"')

    def text(self, part: str) -> None:
        """A part of a string, as it comes."""
        self._out.arguments(quoted(part)[1:-1])

    def end_text(self) -> None:
        self._out.arguments('"')

    def end(self) -> None:
        self._out.arguments("{}" if self._empty else "}")


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
