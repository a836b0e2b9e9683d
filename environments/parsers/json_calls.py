"""Calls that are JSON objects with a name: `{"name": ..., "arguments": {...}}`, alone or in an array."""

from __future__ import annotations

import json
from collections.abc import Sequence

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context
from environments.parsers.json_value import load, pass_string, pass_value, strict_json
from environments.parsers.output import Output
from environments.parsers.reader import Broken, Step, finish, reader_of
from environments.parsers.recovery import skip_json, skip_member

ARGUMENTS = ("arguments", "parameters")
PASSED_OVER = ("type", "id")
"""Keys that say nothing about a call."""


def read_calls(context: Context, marks: Sequence[str]) -> Step[None]:
    """One call, or an array of calls; the reader stands at its bracket. Each is told once it is whole.

    Args:
        marks: Where one stands in no string, broken JSON has ended.

    Raises:
        Broken: The call, or the array, is none; the reader stands after what is broken.
    """
    if (yield from context.reader.peek()) == "[":
        yield from read_list(context, marks)
        return
    start = context.reader.position
    try:
        yield from read_call(context)
    except Broken as broken:
        yield from skip_json(context.reader, start, marks)
        raise Broken(broken.reason) from None


def read_list(
    context: Context, marks: Sequence[str], bare: bool = False, offered: bool = False
) -> Step[None]:
    """An array of calls. A broken one leaves its neighbours alone; the arguments are those of `read_calls`.

    Args:
        bare: It has no marks: what begins with something else than a call is none.
        offered: Calls of offered tools only.
    """
    reader, found = context.reader, False
    broken_for = ""  # why the last call is none; an exception in a local would be a cycle
    yield from reader.expect("[", "no list of calls")
    yield from reader.space()
    if (yield from reader.accept("]")):
        raise Broken("an empty list of calls", quiet=bare)
    while True:
        start = reader.position
        try:
            yield from read_call(context, arguments_required=bare, offered=offered)
            found, broken_for = True, ""
        except Broken as broken:
            if broken.quiet and not found:
                raise
            broken_for = broken.reason
            if not (yield from skip_member(reader, start, marks)):
                raise Broken(broken_for) from None
        yield from reader.space()
        if (yield from reader.accept("]")):
            break
        if not (yield from reader.accept(",")) and not (broken_for and (yield from reader.peek()) == "{"):
            yield from _pass_to_next(context, marks)
        yield from reader.space()
        if broken_for:
            context.give_up(Broken(broken_for))
    if broken_for:
        raise Broken(broken_for)
    context.passed()


def _pass_to_next(context: Context, marks: Sequence[str]) -> Step[None]:
    """Passes what stands between two calls instead of a comma."""
    reader, start = context.reader, context.reader.position
    reason = "the list of calls has no comma or closing bracket after a call"
    if (yield from reader.until(["{", '"', "'", *marks])) != "{":
        yield from skip_json(reader, start, marks)
        raise Broken(reason)
    between = reader.between(start, reader.position).rstrip(" ,")
    context.out.tell(start, f"{reason}, but {between}" if between else reason)


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
        after = self._reader.position
        if self.foreign:
            raise Broken("no tool has the call's name", after)
        if not self._name:
            raise Broken("the call has no name", after)
        if self.keys.isdisjoint(ARGUMENTS):
            if arguments_required:
                raise Broken("the object has a name but no arguments", after)
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


def call_text(call: ParsedCall, arguments: str = "arguments") -> str:
    """A call as an object, its arguments as they are."""
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "{arguments}": {call.arguments}}}'


def list_text(calls: Sequence[ParsedCall]) -> str:
    return "[" + ", ".join(call_text(call) for call in calls) + "]"
