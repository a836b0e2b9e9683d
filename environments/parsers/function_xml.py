"""`<function=name>` with `<parameter=key>` values: Qwen3-Coder, Nemotron 3, Step 3.5, Seed-OSS.

The tags around each function are often left out. One line break at the beginning of a value and one at its
end belong to the tags; everything else is the value's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar
from environments.parsers.reader import Broken, Step
from environments.parsers.tagged_values import Trimmed, TypedArguments, bare, pass_text

FUNCTION, END_FUNCTION = "<function=", "</function>"
PARAMETER, END_PARAMETER = "<parameter=", "</parameter>"
_NAME = re.compile(r"[^\s<>]*")
_KEY = re.compile(r"[^<>\n]*")


@dataclass(frozen=True)
class FunctionXml(Grammar):
    opener: str = "<tool_call>"
    closer: str = "</tool_call>"

    @property
    def openers(self) -> Sequence[str]:  # type: ignore[override]
        return (self.opener, FUNCTION)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader = context.reader
        if opener == self.opener:
            reader.at += len(opener)
            after = reader.position
            yield from reader.space()
            if not (yield from reader.starts(FUNCTION)):
                raise Broken(f"no {FUNCTION} follows {opener}", after)
        while True:
            yield from self._function(context)
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
        name = (yield from reader.word(_NAME)).strip("\"'")
        if not name or not (yield from reader.accept(">")):
            raise Broken(f"no name follows {FUNCTION}", after)
        out.start_call(name)
        writer = ArgumentsWriter(out)
        arguments = TypedArguments(writer, context.tools.get(name))
        followers = (PARAMETER, END_FUNCTION, self.closer)
        missing = ("\n" + PARAMETER, "\n" + END_FUNCTION)
        while True:
            yield from reader.space()
            if (yield from reader.accept(END_FUNCTION)):
                break
            if (yield from reader.starts(self.closer)):
                break
            yield from reader.expect(PARAMETER, f"something else than {PARAMETER} stands in a function")
            key = (yield from reader.word(_KEY)).strip().strip("\"'")
            yield from reader.expect(">", "a parameter's name is not closed")
            value = Trimmed(arguments.begin(key))
            yield from pass_text(reader, END_PARAMETER, followers, value, missing)
            arguments.end()
        writer.end()
        out.finish_call()
        context.passed()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "\n".join(self._written(call) for call in calls)

    def _written(self, call: ParsedCall) -> str:
        if not call.name or not _NAME.fullmatch(call.name) or call.name != call.name.strip("\"'"):
            raise CannotRender(f"{call.name!r} cannot be written as a name")
        lines = [self.opener, f"{FUNCTION}{call.name}>"]
        for key, value in json.loads(call.arguments).items():
            if not _KEY.fullmatch(key) or key != key.strip().strip("\"'"):
                raise CannotRender(f"{key!r} cannot be written as the name of a parameter")
            text = bare(value, END_PARAMETER, PARAMETER, END_FUNCTION)
            lines += [f"{PARAMETER}{key}>", text, END_PARAMETER]
        return "\n".join([*lines, END_FUNCTION, self.closer])
