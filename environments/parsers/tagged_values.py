"""Arguments that stand as bare text between tags: where one ends, and what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from environments.parsers.argument_types import ParameterTypes, json_of, stays_text
from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.grammar import CannotRender
from environments.parsers.json_value import load
from environments.parsers.reader import Broken, Reader, Said, Step, finish, reader_of

_HEAD = re.compile(r"[^<>\n]*")
"""A name, with what else stands in its tag."""
_TAG = re.compile(r"</?[^<>\s]{1,60}>")
LONGEST_TAGS = 300
"""Characters of tags between two calls that are looked at."""


@dataclass(frozen=True)
class Tags:
    """What stands around a value, and around the call that it is in.

    Args:
        value: Begins a value, with its name or after it.
        closer: Closes the value.
        followers: What may come after it.
        call: Begins a call, before its name.
        named: What follows the name; may be empty.
        argument: What begins an argument and what follows its name: so a call is told from a word.
        end: Closes a call.
        between: Other marks that stand between two calls.
        never: What cannot stand in a value, but in a call that it quotes.
    """

    value: str
    closer: str
    followers: tuple[str, ...]
    call: str
    named: str
    argument: tuple[str, str]
    end: str
    between: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def hold(self, text: str) -> bool:
        """Whether `text` is read back as it is."""
        reader, said = reader_of(text + self.closer + self.followers[0]), list[str]()
        try:
            finish(pass_text(reader, self, said.append))
        except Broken:
            return False
        return "".join(said) == text


def pass_text(reader: Reader, tags: Tags, said: Said) -> Step[None]:
    """Passes a value and its closing tag.

    A closing tag ends it only where one of the followers comes after it, or the text ends, and not inside a
    whole call that the value quotes: others are part of it.

    Raises:
        Broken: It is never closed, or only after another call has begun.
    """
    reason = f"a value is not closed by {tags.closer}"
    marks = (tags.closer, tags.call, tags.end, *tags.never)
    quoting = False
    closed = -1  # after a closing tag that nothing proper followed
    while True:
        mark = yield from reader.until_closed(marks, said, reason)
        place = reader.position
        reader.at += len(mark)
        if mark == tags.call:
            is_call = yield from _is_head(reader, tags)
            if is_call and not quoting and _only_tags(reader, tags, closed, place):
                raise Broken(f"{tags.end} is missing after a value", closed)
            quoting = quoting or is_call
        elif quoting:
            quoting = mark != tags.end
        elif mark == tags.closer:
            closed = reader.position
            yield from reader.space()
            if not (yield from reader.peek()) or (yield from _one_comes(reader, tags.followers)):
                return
            reader.go_to(closed)
        elif mark == tags.end:
            resume = reader.position
            yield from reader.space()
            while (yield from reader.accept_any(tags.between)):
                yield from reader.space()
            if (yield from reader.accept(tags.call)) and (yield from _is_head(reader, tags)):
                raise Broken(reason, resume)
        else:
            raise Broken(reason, place)
        said(reader.between(place, reader.position))


def skip_call(reader: Reader, tags: Tags, limits: Sequence[str]) -> Step[None]:
    """From where a call has failed to after its end, or to where the next one begins; values count as one.

    Args:
        limits: What ends it too.
    """
    marks = (tags.value, tags.end, tags.call, *tags.between, *limits)
    while (mark := (yield from reader.until(marks))) in (tags.value, tags.end):
        reader.at += len(mark)
        if mark == tags.end:
            return
        try:
            yield from pass_text(reader, tags, lambda text: None)
        except Broken as broken:
            if broken.resume is not None:
                reader.go_to(broken.resume)
            return


def _only_tags(reader: Reader, tags: Tags, start: int, end: int) -> bool:
    """Whether tags alone, or one that is mistyped, stand between two places, of which the first was found."""
    if start < 0 or end - start > LONGEST_TAGS:
        return False
    text = reader.between(start, end)
    for mark in tags.between:
        text = text.replace(mark, "")
    return len(_TAG.sub("", text).split()) <= 1


def _is_head(reader: Reader, tags: Tags) -> Step[bool]:
    """Passes what follows the beginning of a call; whether it is a name, and then an argument or the end."""
    name = yield from reader.word(_HEAD)
    yield from reader.accept(tags.named)
    yield from reader.space()
    if not name.strip() or (yield from reader.starts(tags.end)):
        return bool(name.strip())
    begin, after = tags.argument
    if not (yield from reader.accept(begin)):
        return False
    return bool((yield from reader.word(_HEAD)).strip()) and (yield from reader.starts(after))


def no_call(reader: Reader, tags: Tags, limits: Sequence[str], reason: str) -> Step[Broken]:
    """What to raise where no call follows a mark: text goes on there, but tags are those of a broken call."""
    start = reader.position
    yield from reader.space()
    if (yield from reader.peek()) != "<":
        return Broken(reason, start)
    yield from skip_call(reader, tags, limits)
    return Broken(reason)


def _one_comes(reader: Reader, literals: Sequence[str]) -> Step[bool]:
    for literal in literals:
        if (yield from reader.starts(literal)):
            return True
    return False


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


def bare(value: str, holds: Callable[[str], bool]) -> str:
    """A value, given as JSON text, as bare text: a string decoded, everything else as it is.

    Args:
        holds: Whether a text can stand as a value.

    Raises:
        CannotRender: It cannot.
    """
    if not value.startswith('"'):
        return value if holds(value) else value.replace("<", "\\u003c")
    text = str(load(value))
    if not holds(text):
        raise CannotRender("what stands in a value would end it")
    return text
