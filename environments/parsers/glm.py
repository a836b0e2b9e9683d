"""GLM: `<tool_call>name`, then pairs `<arg_key>k</arg_key><arg_value>v</arg_value>`; 4.5 breaks the lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar, writable
from environments.parsers.json_value import members
from environments.parsers.reader import Broken, Step
from environments.parsers.tagged_values import Tags, TypedArguments, bare, no_call, pass_text, skip_call

OPEN, CLOSE = "<tool_call>", "</tool_call>"
KEY, END_KEY, VALUE, END_VALUE = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
_NAME = re.compile(r"[^\s<>{}\[\]\"']*")
_KEY = re.compile(r"[^<\n]*")
_TAGS = Tags(
    value=VALUE,
    closer=END_VALUE,
    followers=(KEY, CLOSE),
    call=OPEN,
    named="",
    argument=(KEY, END_KEY),
    end=CLOSE,
)


@dataclass(frozen=True)
class Glm(Grammar):
    """Args:
    gap: What is written between the tags.
    """

    gap: str = ""
    openers = (OPEN,)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        reader.at += len(OPEN)
        yield from reader.space()
        name = yield from reader.word(_NAME)
        yield from reader.space()
        if not name or not ((yield from reader.starts(KEY)) or (yield from reader.starts(CLOSE))):
            raise (yield from no_call(reader, _TAGS, context.limits, f"no call follows {OPEN}"))
        out.start_call(name)
        try:
            yield from self._arguments(name, context)
        except Broken as broken:
            if broken.resume is None:
                yield from skip_call(reader, _TAGS, context.limits)
            raise
        out.finish_call()
        context.passed()

    @staticmethod
    def _arguments(name: str, context: Context) -> Step[None]:
        """The arguments of a call, and what closes it."""
        reader, out = context.reader, context.out
        writer = ArgumentsWriter(out, reader)
        arguments = TypedArguments(writer, context.types_of(name))
        while (yield from reader.accept(KEY)):
            key = (yield from reader.word(_KEY)).strip()
            yield from reader.expect(END_KEY, f"an argument's name is not closed by {END_KEY}")
            yield from reader.space()
            yield from reader.expect(VALUE, f"no {VALUE} follows the name of an argument")
            yield from pass_text(reader, _TAGS, arguments.begin(key))
            arguments.end()
            yield from reader.space()
        # A text that ends here was cut off: more arguments may have been meant.
        yield from reader.expect(CLOSE, f"something else than an argument or {CLOSE} stands in a call")
        writer.end()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "\n".join(self._written(call) for call in calls)

    def _written(self, call: ParsedCall) -> str:
        parts = [f"{OPEN}{writable(call.name, _NAME)}"]
        for key, value in members(call.arguments):
            if key != key.strip():
                raise CannotRender(f"{key!r} cannot be written as the name of an argument")
            parts.append(f"{KEY}{writable(key, _KEY)}{END_KEY}")
            parts.append(f"{VALUE}{bare(value, _TAGS.hold)}{END_VALUE}")
        return self.gap.join([*parts, CLOSE])
