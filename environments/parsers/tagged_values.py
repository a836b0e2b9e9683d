"""Arguments that stand as bare text between tags: where one ends, and what it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.argument_types import ParameterTypes, json_of, stays_text
from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.grammar import CannotRender
from environments.parsers.json_value import load
from environments.parsers.reader import Reader, Said, Step


def pass_text(reader: Reader, closer: str, followers: Sequence[str], said: Said) -> Step[None]:
    """Passes a value and its closing tag.

    A closing tag ends it only where one of `followers` comes after it, or the text ends: others are part of
    it.

    Raises:
        Broken: It is never closed.
    """
    while True:
        yield from reader.until_closed([closer], said, f"a value is not closed by {closer}")
        place = reader.position
        reader.at += len(closer)
        after = reader.position
        yield from reader.space()
        if not (yield from reader.peek()):
            return
        for follower in followers:
            if (yield from reader.starts(follower)):
                return
        said(reader.between(place, after))
        reader.go_to(after)


class Trimmed:
    """Text without the one line break (LF or CRLF) at its beginning and the one at its end, as it comes."""

    def __init__(self, said: Said) -> None:
        self._said = said
        self._begun = False
        self._held = ""

    def __call__(self, text: str) -> None:
        text = self._held + text
        self._held = ""
        if not self._begun:
            if text in ("", "\r"):
                self._held = text
                return
            self._begun = True
            text = text.removeprefix("\n") if text.startswith("\n") else text.removeprefix("\r\n")
        for end in ("\r\n", "\n", "\r"):
            if text.endswith(end):
                self._held = end
                text = text[: -len(end)]
                break
        if text:
            self._said(text)

    def end(self) -> None:
        """The text has ended: a carriage return alone was no line break."""
        if self._held == "\r":
            self._said("\r")


class TypedArguments:
    """Writes the arguments of one call, each of the type that the tool's schema gives it.

    Text is told as it comes; what may be of another type once it is whole.

    Args:
        parameters: Of the tool.
    """

    def __init__(self, writer: ArgumentsWriter, parameters: ParameterTypes) -> None:
        self._writer, self._parameters = writer, parameters
        self._types: frozenset[str] = frozenset()
        self._parts: list[str] = []

    def begin(self, key: str, types: frozenset[str] | None = None) -> Said:
        """Begins an argument; what is returned takes its text. `types` None: as the schema says."""
        self._types = self._parameters.of(key) if types is None else types
        self._writer.key(key)
        if stays_text(self._types):
            self._writer.begin_text()
            return self._writer.text
        self._parts = []
        return self._parts.append

    def end(self) -> None:
        """Ends the argument."""
        if stays_text(self._types):
            self._writer.end_text()
        else:
            self._writer.value(json_of("".join(self._parts), self._types))


def bare(value: str, ends: re.Pattern[str], before: str = "") -> str:
    """A value, given as JSON text, as bare text: a string decoded, everything else as it is.

    Args:
        ends: What would end it.
        before: Stands before it, and may be the beginning of what would.

    Raises:
        CannotRender: It would end inside.
    """
    if not value.startswith('"'):
        return value.replace("<", "\\u003c") if ends.search(before + value) else value
    text = str(load(value))
    if found := ends.search(before + text):
        raise CannotRender(f"{found[0]!r} stands in a value")
    return text


def closing(closer: str, followers: Sequence[str]) -> re.Pattern[str]:
    """What ends a value that `pass_text` passes with the same arguments."""
    return re.compile(rf"{re.escape(closer)}\s*(?:{'|'.join(map(re.escape, followers))})")
