"""`<function=name>` with `<parameter=key>` values: Qwen3-Coder, Nemotron 3, Step 3.5, Seed-OSS.

The tags around each function are often left out. One line break at the beginning of a value and one at its
end belong to the tags; everything else is the value's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar, writable
from environments.parsers.json_value import members
from environments.parsers.reader import Broken, Step
from environments.parsers.tagged_values import (
    Tags,
    Trimmed,
    TypedArguments,
    bare,
    no_call,
    pass_text,
    skip_call,
)

FUNCTION, END_FUNCTION = "<function=", "</function>"
PARAMETER, END_PARAMETER = "<parameter=", "</parameter>"
_NAME = re.compile(r"[^\s<>]*")
_KEY = re.compile(r"[^<>\n]*")


@dataclass(frozen=True)
class FunctionXml(Grammar):
    opener: str = "<tool_call>"
    closer: str = "</tool_call>"

    @property
    def openers(self) -> Sequence[str]:
        return (self.opener, FUNCTION)

    @property
    def _tags(self) -> Tags:
        followers = (PARAMETER, END_FUNCTION, self.closer)
        return Tags(
            value=PARAMETER,
            closer=END_PARAMETER,
            followers=followers,
            call=FUNCTION,
            named=">",
            argument=(PARAMETER, ">"),
            end=END_FUNCTION,
            between=(self.closer, self.opener),
        )

    def read(self, opener: str, context: Context) -> Step[None]:
        reader = context.reader
        if opener == self.opener:
            reader.at += len(opener)
            after = reader.position
            yield from reader.space()
            if not (yield from reader.starts(FUNCTION)):
                reader.go_to(after)
                reason = f"no {FUNCTION} follows {opener}"
                raise (yield from no_call(reader, self._tags, context.limits, reason))
        while True:
            try:
                yield from self._function(context)
            except Broken as broken:
                if broken.resume is None:
                    yield from skip_call(reader, self._tags, context.limits)
                raise
            yield from reader.space()
            if not (yield from reader.starts(FUNCTION)):
                break
        if (yield from reader.accept(self.closer)):
            context.passed()
        reader.go_to(context.begun)

    def _function(self, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        reader.at += len(FUNCTION)
        after = reader.position
        name = _unquoted((yield from reader.word(_NAME)))
        if not name or not (yield from reader.accept(">")):
            raise Broken(f"no name follows {FUNCTION}", after)
        out.start_call(name)
        writer = ArgumentsWriter(out, reader)
        arguments = TypedArguments(writer, context.types_of(name))
        while True:
            yield from reader.space()
            if (yield from reader.accept(END_FUNCTION)):
                break
            if (yield from reader.starts(self.closer)):
                break
            yield from reader.expect(PARAMETER, f"something else than {PARAMETER} stands in a function")
            key = _unquoted((yield from reader.word(_KEY)))
            yield from reader.expect(">", "a parameter's name is not closed")
            value = Trimmed(arguments.begin(key))
            yield from pass_text(reader, self._tags, value)
            value.end()
            arguments.end()
        writer.end()
        out.finish_call()
        context.passed()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "\n".join(self._written(call) for call in calls)

    def _written(self, call: ParsedCall) -> str:
        lines = [self.opener, f"{FUNCTION}{_name(call.name, _NAME)}>"]
        for key, value in members(call.arguments):
            text = bare(value, lambda text: self._tags.hold(f"\n{text}\n"))
            if text.endswith("\r"):
                text += "\r"  # so that the line break after it is CRLF, and its own stays
            lines += [f"{PARAMETER}{_name(key, _KEY)}>", text, END_PARAMETER]
        return "\n".join([*lines, END_FUNCTION, self.closer])


def _name(text: str, pattern: re.Pattern[str]) -> str:
    if text != _unquoted(text):
        raise CannotRender(f"{text!r} cannot be written as a name")
    return writable(text, pattern)


def _unquoted(name: str) -> str:
    return name.strip().strip("\"'")
