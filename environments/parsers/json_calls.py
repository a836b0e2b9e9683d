"""Calls that are JSON objects with a name: `{"name": ..., "arguments": {...}}`, alone or in an array."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context
from environments.parsers.json_value import load, pass_string, pass_value, strict_json
from environments.parsers.output import Output
from environments.parsers.reader import Broken, Reader, Step, finish, reader_of

ARGUMENTS = ("arguments", "parameters")
_QUOTE = re.compile("[\"']")
PASSED_OVER = ("type", "id")
"""Keys that say nothing about a call."""


def read_calls(context: Context) -> Step[None]:
    """One call, or an array of calls; the reader stands at its bracket. Each is told once it is whole."""
    reader = context.reader
    if not (yield from reader.accept("[")):
        yield from read_call(context)
        return
    yield from reader.space()
    if (yield from reader.accept("]")):
        raise Broken("an empty list of calls")
    while True:
        yield from read_call(context)
        yield from reader.space()
        if (yield from reader.accept("]")):
            context.passed()
            return
        yield from reader.expect(",", "the list of calls has no comma or closing bracket after a call")
        yield from reader.space()


def read_call(context: Context, arguments_required: bool = False, offered: bool = False) -> Step[None]:
    """One object. Its arguments are told as they come, once its name is known.

    Args:
        arguments_required: Without name and arguments the object is no call, nor the try of one; otherwise
            it is a call without arguments, if it has a name.
        offered: With a name that no offered tool has, it is no call either.

    Raises:
        Broken: It is no JSON, or no call.
    """
    call = _Call(context, offered)
    try:
        yield from call.read(arguments_required)
    except Broken as broken:
        tried = "name" in call.keys and not call.keys.isdisjoint(ARGUMENTS) and not call.foreign
        raise Broken(broken.reason, broken.resume, quiet=arguments_required and not tried) from None
    context.passed()


class _Call:
    """One call, told as soon as its name is known."""

    def __init__(self, context: Context, offered: bool) -> None:
        self._context, self._offered = context, offered
        self._reader, self._out = context.reader, context.out
        self.foreign = False
        """Its name is none of the offered tools': it is passed, and told to nobody."""
        self.keys: set[str] = set()
        self._name = ""
        self._arguments = ""
        """Those that have come before the name."""
        self._unread: list[tuple[int, int]] = []

    def read(self, arguments_required: bool) -> Step[None]:
        yield from self._members()
        if self.foreign:
            raise Broken("no tool has the call's name")
        if not self._name:
            raise Broken("the call has no name")
        if self.keys.isdisjoint(ARGUMENTS):
            if arguments_required:
                raise Broken("the object has a name but no arguments")
            self._out.start_call(self._name)
            self._out.arguments("{}")
        self._out.finish_call()
        for begun, end in self._unread:
            text = self._reader.between(begun, end)
            self._out.tell(begun, f"a call has more than name and arguments: {text}")

    def _members(self) -> Step[None]:
        reader, first = self._reader, True
        yield from reader.expect("{", "a call must be a JSON object")
        yield from reader.space()
        while not (yield from reader.accept("}")):
            if not first:
                yield from reader.expect(
                    ",", "the call's JSON has no comma or closing brace where one must be"
                )
                yield from reader.space()
            first = False
            yield from self._member()
            yield from reader.space()

    def _member(self) -> Step[None]:
        reader, begun = self._reader, self._reader.position
        if (yield from reader.peek()) != '"':
            raise Broken("the call's JSON has something else than a key in double quotes")
        key = yield from pass_string(reader)
        again = key in self.keys or (key in ARGUMENTS and not self.keys.isdisjoint(ARGUMENTS))
        self.keys.add(key)
        yield from reader.space()
        yield from reader.expect(":", "the call's JSON has no colon after a key")
        yield from reader.space()
        if key == "name":
            yield from self._take_name(again)
        elif key in ARGUMENTS:
            yield from self._take_arguments(again)
        else:
            yield from pass_value(reader)
            if key not in PASSED_OVER:
                self._unread.append((begun, reader.position))

    def _take_name(self, again: bool) -> Step[None]:
        if (yield from self._reader.peek()) != '"':
            raise Broken("the call's name is not text")
        if again:
            raise Broken("the call has two names")
        self._name = yield from pass_string(self._reader)
        if not self._name.strip():
            raise Broken("the call has no name")
        if self._offered and not self._context.offers(self._name):
            self.foreign, self._out = True, Output()
        if self._arguments:
            self._out.start_call(self._name)
            self._out.arguments(self._arguments)

    def _take_arguments(self, again: bool) -> Step[None]:
        if again:
            raise Broken("the call has its arguments twice")
        if self._name and (yield from self._reader.peek()) == "{":
            self._out.start_call(self._name)
            yield from pass_value(self._reader, self._out.arguments)
            return
        said: list[str] = []
        yield from pass_value(self._reader, said.append)
        self._arguments = object_text("".join(said))
        if self._name:
            self._out.start_call(self._name)
            self._out.arguments(self._arguments)


def call_of(text: str) -> ParsedCall:
    """The call of a text that is one JSON object.

    Raises:
        Broken: It is no call.
    """
    context = Context(reader_of(text), Output(), {})
    finish(read_call(context, arguments_required=True))
    return context.out.calls[0]


def object_text(text: str) -> str:
    """The arguments of a call, given as any JSON value: an object, null, or a string that holds an object.

    Raises:
        Broken: They are something else.
    """
    if text == "null":
        return "{}"
    if text.startswith('"'):
        text = strict_json(load(text).strip()) or ""
    if not text.startswith("{"):
        raise Broken("the call's arguments are no JSON object")
    return text


def skip_broken(context: Context, marks: Sequence[str]) -> Step[None]:
    """Goes on from where the JSON of a call has failed to the first of `marks` that stands in no string.

    What is quoted in a call is none, though the call is broken or cut off. But a string that holds a mark and
    has no comma after it has most likely lost its closing quote: the marks in it count.
    """
    reader = context.reader
    if not (yield from reader.peek()):
        return
    inside = _mark_in_last_string(reader.between(context.begun, reader.position), marks)
    if inside is not None:
        reader.go_to(context.begun + inside)
        return
    read = _QUOTE.search(reader.between(context.begun, reader.position + 1))  # a Python dict has single ones
    quote = read[0] if read else '"'
    while (yield from reader.until([quote, *marks])) == quote:
        reader.at += 1
        yield from _pass_quoted(reader, quote)


def skip_object(context: Context) -> Step[None]:
    """Goes on after the object that the broken call is, by its braces; to the end where they do not match."""
    reader, depth = context.reader, 0
    reader.go_to(context.begun)
    while sign := (yield from reader.until(['"', "{", "}"])):
        reader.at += 1
        if sign == '"':
            yield from _pass_quoted(reader, '"')
        else:
            depth += 1 if sign == "{" else -1
            if depth <= 0:
                return


def _pass_quoted(reader: Reader, quote: str) -> Step[None]:
    """The rest of a string, from after its opening quote."""
    while (yield from reader.until(["\\", quote])) == "\\":
        reader.at += 1
        yield from reader.need(1)
        reader.at = min(reader.at + 1, len(reader.text))
    yield from reader.accept(quote)


def _mark_in_last_string(text: str, marks: Sequence[str]) -> int | None:
    """Where a mark stands in the string that `text` ends with."""
    text = text.rstrip()
    if not text.endswith('"'):
        return None
    quote = len(text) - 1
    while quote > 0:
        quote = text.rfind('"', 0, quote)
        before = text[:quote]
        if quote < 0 or (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            break
    places = [text.find(mark, quote + 1) for mark in marks] if quote >= 0 else []
    return min((place for place in places if place >= 0), default=None)


def call_text(call: ParsedCall, arguments: str = "arguments") -> str:
    """A call as an object, its arguments as they are."""
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "{arguments}": {call.arguments}}}'


def list_text(calls: Sequence[ParsedCall]) -> str:
    return "[" + ", ".join(call_text(call) for call in calls) + "]"
