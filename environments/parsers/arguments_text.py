"""The arguments of a call as JSON text, written while a grammar that is no JSON is read."""

from __future__ import annotations

import json

from environments.parsers.output import Output
from environments.parsers.reader import Reader


class ArgumentsWriter:
    """Writes one object. A key that comes twice is written twice, and told of."""

    def __init__(self, out: Output, reader: Reader) -> None:
        self._out, self._reader = out, reader
        self._keys: set[str] = set()

    def key(self, name: str) -> None:
        if name in self._keys:
            self._out.tell(
                self._reader.position, f"the argument {name!r} is given twice: the last one counts"
            )
        self._out.arguments((", " if self._keys else "{") + quoted(name) + ": ")
        self._keys.add(name)

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
        self._out.arguments("}" if self._keys else "{}")


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
