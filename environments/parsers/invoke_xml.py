"""`<invoke name="f">` with `<parameter name="k">` values: MiniMax M2, DeepSeek V3.2 and V4 (DSML), Step 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.argument_types import ANY, TEXT
from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar, writable
from environments.parsers.json_value import members, pass_value
from environments.parsers.reader import Broken, Step
from environments.parsers.tagged_values import Tags, TypedArguments, bare, no_call, pass_text, skip_call

_ATTRIBUTE = re.compile(r"[^\"'<>\n]*")
_UNQUOTED = re.compile(r"[^\s\"'<>/]*")


@dataclass(frozen=True)
class InvokeXml(Grammar):
    """Args:
    begin: Opens the section.
    end: Closes the section.
    tag: Stands before the names of the tags, such as `｜DSML｜`.
    call_begin: Stands before each call.
    call_end: Stands after each call.
    typed: Parameters say themselves whether they are strings: `string="true"`, or `"false"` for JSON.
    """

    begin: str
    end: str
    tag: str = ""
    call_begin: str = ""
    call_end: str = ""
    typed: bool = False

    @property
    def openers(self) -> Sequence[str]:
        return (self.begin, f"<{self.tag}invoke name=")

    @property
    def _names(self) -> tuple[str, str, str]:
        """What opens a parameter, closes a parameter, closes a call."""
        return f"<{self.tag}parameter", f"</{self.tag}parameter>", f"</{self.tag}invoke>"

    @property
    def _tags(self) -> Tags:
        begin, end, close = self._names
        between = (self.begin, self.end, self.call_begin, self.call_end)
        return Tags(
            value=begin,
            closer=end,
            followers=(begin, close),
            call=self.openers[-1],
            named=">",
            argument=(begin, ">"),
            end=close,
            between=tuple(filter(None, between)),
        )

    def read(self, opener: str, context: Context) -> Step[None]:
        reader = context.reader
        invoke, found = self.openers[-1], 0
        if opener != invoke:
            reader.at += len(opener)
        while True:
            yield from reader.space()
            if self.call_begin and (yield from reader.accept(self.call_begin)):
                yield from reader.space()
            if not (yield from reader.accept(invoke)):
                break
            try:
                yield from self._call(context)
            except Broken as broken:
                if broken.resume is None:
                    yield from skip_call(reader, self._tags, context.limits)
                raise
            found += 1
        if not found:
            raise (yield from no_call(reader, self._tags, context.limits, f"no call follows {opener}"))
        if (yield from reader.accept(self.end)):
            context.passed()
        reader.go_to(context.begun)

    def _call(self, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        name = yield from self._quoted(context)
        yield from reader.space()
        if not name:
            raise Broken("a call has no name")
        out.start_call(name)
        writer = ArgumentsWriter(out, reader)
        if (yield from reader.accept("/>")):
            writer.end()
        else:
            yield from reader.expect(">", "a call's tag is not closed")
            yield from self._body(name, writer, context)
        yield from reader.space()
        if self.call_end:
            yield from reader.accept(self.call_end)
        out.finish_call()
        context.passed()

    def _body(self, name: str, writer: ArgumentsWriter, context: Context) -> Step[None]:
        reader = context.reader
        begin, _, close = self._names
        arguments = TypedArguments(writer, context.types_of(name))
        yield from reader.space()
        if (yield from reader.peek()) == "{":
            yield from pass_value(reader, writer.value)
            yield from reader.space()
            yield from reader.expect(close, "something follows the JSON of a call")
            return
        while not (yield from reader.accept(close)):
            yield from reader.expect(begin, "something else than a parameter stands in a call")
            yield from reader.space()
            yield from reader.expect("name=", "a parameter has no name")
            key = yield from self._quoted(context)
            yield from reader.space()
            types = None
            if (yield from reader.accept("string=")):
                is_string = yield from self._quoted(context)
                types = TEXT if is_string == "true" else ANY
                if is_string not in ("true", "false"):
                    context.out.tell(reader.position, f'string="{is_string}" is neither true nor false')
                yield from reader.space()
            elif self.typed:
                types = context.types_of(name).of(key) or ANY
            yield from reader.expect(">", "a parameter's tag is not closed")
            yield from pass_text(reader, self._tags, arguments.begin(key, types))
            arguments.end()
            yield from reader.space()
        writer.end()

    @staticmethod
    def _quoted(context: Context) -> Step[str]:
        """An attribute's value, in quotes of either kind or without any."""
        reader = context.reader
        quote = yield from reader.accept_any(('"', "'"))
        value = yield from reader.word(_ATTRIBUTE if quote else _UNQUOTED)
        if quote:
            yield from reader.expect(quote, "an attribute's quotes are not closed")
        return value

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "\n".join([self.begin, *(self._written(call) for call in calls), self.end])

    def _written(self, call: ParsedCall) -> str:
        begin, end, close = self._names
        lines = [f'{self.call_begin}<{self.tag}invoke name="{writable(call.name, _ATTRIBUTE)}">']
        for key, value in members(call.arguments):
            is_string = "true" if value.startswith('"') else "false"
            typed = f' string="{is_string}"' if self.typed else ""
            lines.append(
                f'{begin} name="{writable(key, _ATTRIBUTE)}"{typed}>{bare(value, self._tags.hold)}{end}'
            )
        return "\n".join([*lines, f"{close}{self.call_end}"])
