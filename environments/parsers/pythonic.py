"""Calls as Python writes them: Llama 4 and small Llama 3.2 (`[f(a=1), g()]`), LFM2, OLMo 3 (one per line)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar, writable
from environments.parsers.json_value import members
from environments.parsers.output import Output
from environments.parsers.python_literal import literal, pass_literal
from environments.parsers.reader import Broken, Step
from environments.parsers.recovery import skip_json, skip_python_call, skip_quoted_list

_NAME = re.compile(r"[\w.-]*")
_KEY = re.compile(r"\w*")


@dataclass(frozen=True)
class Pythonic(Grammar):
    """Args:
    opener: The mark before the calls.
    closer: The mark after them.
    brackets: The calls stand in a list; otherwise each has a line of its own.
    bare: The marks may be missing; in a text only offered tools are called then.
    """

    opener: str
    closer: str
    brackets: bool = True
    bare: bool = False
    noise = re.compile(r"\[+(?=\[)|\[(?=\s*+(?:[^\s\[\w.'\"-]|[\w.-]{1,256}+[^\w.(-]))")

    @property
    def openers(self) -> Sequence[str]:
        return (self.opener, "[") if self.bare else (self.opener,)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, marked = context.reader, opener == self.opener
        if not marked and context.after_word():
            raise Broken("an index is no list of calls", quiet=True)
        if marked:
            reader.at += len(opener)
            yield from reader.space()
        if self.brackets and not (yield from reader.accept("[")):
            yield from skip_json(reader, reader.position, (self.opener, self.closer, *context.limits))
            raise Broken(f"no list of calls follows {opener}")
        yield from reader.space()
        if not marked and (yield from reader.peek()) in ("'", '"'):
            yield from skip_quoted_list(reader, context.begun)
            raise Broken("a list of texts is no list of calls", quiet=True)
        yield from self._calls(context, offered=context.in_text and not marked)
        yield from reader.space()
        if (yield from reader.accept(self.closer)):
            context.passed()
        reader.go_to(context.begun)

    def _calls(self, context: Context, offered: bool) -> Step[None]:
        """The calls, and what closes their list. A broken one leaves its neighbours alone."""
        reader, found = context.reader, False
        broken_for = ""  # why the last call is none; an exception in a local would be a cycle
        ends = (",", "]") if self.brackets else ("\n",)
        marks = (self.closer, *context.limits)
        while True:
            start = reader.position
            try:
                yield from self._call(context, offered)
                found, broken_for = True, ""
            except Broken as broken:
                if broken.quiet and not found:
                    raise
                broken_for = broken.reason
                if not (yield from skip_python_call(reader, start, marks, ends)):
                    raise Broken(broken_for) from None
                yield from reader.space()
            if self.brackets:
                if (yield from reader.accept("]")):
                    break
                if not (yield from reader.accept(",")):
                    yield from reader.until(marks)  # what is quoted there is none
                    raise Broken(broken_for or "the list of calls has no comma or bracket after a call")
                yield from reader.space()
            elif (yield from reader.starts(self.closer)) or not (yield from reader.peek()):
                break
            if broken_for:
                context.give_up(Broken(broken_for))
        if broken_for:
            raise Broken(broken_for)
        context.passed()

    def _call(self, context: Context, offered: bool) -> Step[None]:
        """One call, and the white space after it; `offered`: of an offered tool only."""
        reader, out = context.reader, context.out
        name = yield from reader.word(_NAME)
        if not name or not (yield from reader.accept("(")):
            raise Broken("a list of calls has something that is no call", quiet=self.bare)
        foreign = offered and not context.offers(name)
        if foreign:
            out = Output()
        out.start_call(name)
        arguments = ArgumentsWriter(out, reader)
        yield from reader.space()
        first = True
        while not (yield from reader.accept(")")):
            if not first:
                yield from reader.expect(",", "a call has no comma or parenthesis after an argument")
                yield from reader.space()
                if (yield from reader.accept(")")):
                    break
            first = False
            key = yield from reader.word(_KEY)
            yield from reader.space()
            if not key or not (yield from reader.accept("=")):
                raise Broken("a call has an argument without a name")
            yield from reader.space()
            arguments.key(key)
            yield from pass_literal(reader, arguments.value)
            yield from reader.space()
        arguments.end()
        if foreign:
            raise Broken(f"no tool has the name {name!r}", quiet=True)
        out.finish_call()
        context.passed()
        yield from reader.space()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        written = [self._written(call) for call in calls]
        if not self.brackets:
            return "\n".join([self.opener, *written, self.closer])
        opener, closer = ("", "") if self.bare else (self.opener, self.closer)
        return f"{opener}[{', '.join(written)}]{closer}"

    @staticmethod
    def _written(call: ParsedCall) -> str:
        name = writable(call.name, _NAME)
        arguments = [(writable(key, _KEY), literal(value)) for key, value in members(call.arguments)]
        if not all(key for key, _ in arguments):
            raise CannotRender("an argument has no name")
        return f"{name}({', '.join(f'{key}={value}' for key, value in arguments)})"
