"""Calls that are JSON objects with a name: `{"name": ..., "arguments": {...}}`, alone or in an array."""

from __future__ import annotations

import json
from collections.abc import Sequence

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context
from environments.parsers.json_value import load, pass_string, pass_value, strict_json
from environments.parsers.output import Output
from environments.parsers.reader import Broken, Step, finish, reader_of

ARGUMENTS = ("arguments", "parameters")
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


def read_call(context: Context, arguments_required: bool = False) -> Step[None]:
    """One object. Its arguments are told as they come, once its name is known.

    Args:
        arguments_required: Without name and arguments the object is no call, nor the try of one; otherwise
            it is a call without arguments, if it has a name.

    Raises:
        Broken: It is no JSON, or no call.
    """
    seen: set[str] = set()
    try:
        yield from _read_call(context, arguments_required, seen)
    except Broken as broken:
        tried = "name" in seen and not seen.isdisjoint(ARGUMENTS)
        raise Broken(broken.reason, broken.resume, quiet=arguments_required and not tried) from None
    context.passed()


def _read_call(context: Context, arguments_required: bool, seen: set[str]) -> Step[None]:
    reader, out = context.reader, context.out
    name: str | None = None
    arguments: str | None = None
    started = False
    unread: list[tuple[int, int]] = []

    yield from reader.expect("{", "a call must be a JSON object")
    yield from reader.space()
    first = True
    while not (yield from reader.accept("}")):
        if not first:
            yield from reader.expect(",", "the call's JSON has no comma or closing brace where one must be")
            yield from reader.space()
        first = False
        if (yield from reader.peek()) != '"':
            raise Broken("the call's JSON has something else than a key in double quotes")
        begun = reader.position
        key = yield from pass_string(reader)
        seen.add(key)
        yield from reader.space()
        yield from reader.expect(":", "the call's JSON has no colon after a key")
        yield from reader.space()
        sign = yield from reader.peek()
        if key == "name":
            if sign != '"' or name is not None:
                raise Broken("the call's name is not text" if sign != '"' else "the call has two names")
            name = yield from pass_string(reader)
            if not name.strip():
                raise Broken("the call has no name")
            if arguments is not None:
                out.start_call(name)
                out.arguments(arguments)
                started = True
        elif key in ARGUMENTS:
            if arguments is not None:
                raise Broken("the call has its arguments twice")
            if sign == "{" and name is not None:
                out.start_call(name)
                started = True
                yield from pass_value(reader, out.arguments)
                arguments = ""
            else:
                said: list[str] = []
                yield from pass_value(reader, said.append)
                arguments = object_text("".join(said))
                if name is not None:
                    out.start_call(name)
                    out.arguments(arguments)
                    started = True
        else:
            yield from pass_value(reader)
            if key not in PASSED_OVER:
                unread.append((begun, reader.position))
        yield from reader.space()
    if name is None:
        raise Broken("the call has no name")
    if not started:
        if arguments_required:
            raise Broken("the object has a name but no arguments")
        out.start_call(name)
        out.arguments("{}")
    out.finish_call()
    for begun, end in unread:
        out.tell(begun, f"a call has more than name and arguments: {reader.between(begun, end)}")


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

    A string that is never closed is none, and one that holds a mark and has no comma after it has most
    likely lost its closing quote: the marks in it count.
    """
    reader = context.reader
    inside = _mark_in_last_string(reader.between(context.begun, reader.position), marks)
    if inside is not None:
        reader.go_to(context.begun + inside)
        return
    while (yield from reader.until(['"', *marks])) == '"':
        quote = reader.position
        reader.at += 1
        while (yield from reader.until(["\\", '"'])) == "\\":
            reader.at += 1
            yield from reader.need(1)
            reader.at = min(reader.at + 1, len(reader.text))
        if not (yield from reader.accept('"')):
            reader.go_to(quote + 1)
            yield from reader.until(marks)
            return


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
