"""JSON calls between marks: Hermes, Qwen, LongCat, Granite, ERNIE, InternLM, Hunyuan, Phi-4-mini."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar
from environments.parsers.json_calls import call_text, list_text, read_calls
from environments.parsers.reader import Broken, Step


@dataclass(frozen=True)
class TaggedJson(Grammar):
    """`<tool_call>` call or array of calls `</tool_call>`; the last closing mark may be missing.

    Args:
        marks: Any of them opens a call; the first is written.
        closer: Empty where the grammar has none.
        may_close: A mark that may follow the calls of a grammar without a closer; it is not written.
        second: A mark that follows the opener.
        as_list: All calls are written into one array.
        arguments: The key of the arguments, where calls are written.
        gap: What is written between marks and calls.
    """

    marks: Sequence[str]
    closer: str = ""
    second: str = ""
    as_list: bool = False
    arguments: str = "arguments"
    gap: str = "\n"
    may_close: str = ""

    @property
    def openers(self) -> Sequence[str]:
        return self.marks

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, closers = context.reader, [mark for mark in (self.closer, self.may_close) if mark]
        marks = [*self.marks, *closers, *context.limits]
        reader.at += len(opener)
        yield from reader.space()
        if self.second:
            if not (yield from reader.accept(self.second)):
                raise Broken(f"{opener} is not followed by {self.second}", reader.position)
            yield from reader.space()
        if (yield from reader.peek()) not in ("{", "["):
            raise Broken(f"no JSON follows {opener}", reader.position)
        try:
            yield from read_calls(context, marks)
            yield from self._close(context, marks)
        except Broken:
            yield from reader.accept_any(closers)
            raise
        context.passed()

    def _close(self, context: Context, marks: Sequence[str]) -> Step[None]:
        reader = context.reader
        if self.may_close:
            after = reader.position
            yield from reader.space()
            if not (yield from reader.accept(self.may_close)):
                reader.go_to(after)
        if not self.closer:
            return
        yield from reader.space()
        if (yield from reader.accept(self.closer)) or not (yield from reader.peek()):
            return
        for opener in self.marks:
            if (yield from reader.starts(opener)):
                return
        yield from reader.until(marks)
        raise Broken(f"something else than {self.closer} follows the call")

    def render(self, calls: Sequence[ParsedCall]) -> str:
        opener = self.marks[0] + self.second
        if self.as_list:
            return f"{opener}{self.gap}{list_text(calls)}{self.gap}{self.closer}"
        written = (call_text(call, self.arguments) for call in calls)
        return "\n".join(f"{opener}{self.gap}{text}{self.gap}{self.closer}" for text in written)
