"""Gemma 4 and FunctionGemma: `call:name{key:value,...}` between marks, strings between string marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.argument_types import TEXT, ParameterTypes, json_of, number_text
from environments.parsers.arguments_text import quoted
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar, writable
from environments.parsers.json_value import members, rewritten
from environments.parsers.nested import Notation, pass_nested
from environments.parsers.reader import LONGEST_WORD, Broken, Reader, Said, Step
from environments.parsers.tagged_values import bare

_NAME = re.compile(r"[^\s{}\[\],:<]*")
_BARE = re.compile(r"[^,{}\[\]<\n]*")
_WORDS = ("true", "false", "null")


@dataclass(frozen=True)
class Gemma(Grammar):
    """Args:
    begin: Opens a call.
    end: Closes it; the last may be missing.
    quote: Stands before and after a string.
    all_strings: Every value stands in string marks: it is of the type that the schema says.
    """

    begin: str
    end: str
    quote: str
    all_strings: bool = False

    @property
    def openers(self) -> Sequence[str]:
        return (self.begin,)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        reader.at += len(opener)
        after = reader.position
        yield from reader.space()
        if not (yield from reader.accept("call:")):
            raise Broken(f"no call follows {opener}", after)
        name = (yield from reader.word(_NAME)).strip()
        if not name or not (yield from reader.starts("{")):
            raise Broken("a call has no name, or no arguments", after)
        out.start_call(name)
        try:
            yield from pass_nested(reader, _Values(self, context.types_of(name)), out.arguments)
        except Broken as broken:
            raise Broken(broken.reason, (yield from self._next_call(context))) from None
        yield from reader.space()
        closed = (yield from reader.accept(self.end)) or (yield from reader.starts(self.begin))
        if not closed and (yield from reader.peek()):
            raise Broken(f"something else than {self.end} follows the call")
        out.finish_call()
        context.passed()

    def _next_call(self, context: Context) -> Step[int | None]:
        """Where the next call begins in the string that reading has failed after, or in a later one.

        Such a string was never closed, or one before it: it holds the end of the call first. What other
        strings hold is no call. Without such a string the reader stands after the end of the call.
        """
        reader = context.reader
        before, closed, after = reader.between(context.begun, reader.position).rpartition(self.quote)
        start = before.rfind(self.quote) + len(self.quote)
        if closed and not after.strip() and (place := self._swallowed(before[start:])):
            return context.begun + start + place
        marks = (self.quote, self.end, self.begin, *context.limits)
        while (mark := (yield from reader.until(marks))) == self.quote:
            reader.at += len(mark)
            begun = reader.position
            yield from reader.until([self.quote])
            if place := self._swallowed(reader.between(begun, reader.position)):
                return begun + place
            yield from reader.accept(self.quote)
        if mark == self.end:
            reader.at += len(mark)
        return None

    def _swallowed(self, text: str) -> int:
        """Where a call begins in what seems to be a string; 0 where none does, or it is quoted there."""
        end, begin = text.find(self.end), text.find(self.begin)
        return begin if 0 <= end < begin else 0

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "".join(f"{self.begin}{self._written(call)}{self.end}" for call in calls)

    def _written(self, call: ParsedCall) -> str:
        if self.all_strings:
            pairs = [f"{self._key(key)}:{self._string(value)}" for key, value in members(call.arguments)]
            arguments = "{" + ",".join(pairs) + "}"
        else:
            arguments = rewritten(call.arguments, self._key, self._marked, _bare)
        return f"call:{writable(call.name, _NAME)}{arguments}"

    def _key(self, key: str) -> str:
        return key if key and _NAME.fullmatch(key) and len(key) <= LONGEST_WORD else self._marked(key)

    def _string(self, value: str) -> str:
        """Any value, given as JSON text, as a string."""
        return self._marked(bare(value, lambda text: self.quote not in text))

    def _marked(self, text: str) -> str:
        if self.quote in text:
            raise CannotRender(f"{self.quote} stands in a string")
        return f"{self.quote}{text}{self.quote}"


@dataclass(frozen=True)
class _Values(Notation):
    """How arguments are written: the types of the outermost are those of the tool's parameters."""

    grammar: Gemma
    types: ParameterTypes
    brackets = "{["
    comma_at_end = False

    def scalar(self, reader: Reader, said: Said, path: list[str]) -> Step[None]:
        types = self.types.of(*path)
        if (yield from reader.accept(self.grammar.quote)):
            parts: list[str] = []
            typed = self.grammar.all_strings and len(path) == 1 and types != {"string"}
            if not typed:
                said('"')
            take = parts.append if typed else lambda text: said(quoted(text)[1:-1])
            yield from reader.until_closed([self.grammar.quote], take, "a string is not closed")
            reader.at += len(self.grammar.quote)
            said(json_of("".join(parts), types) if typed else '"')
            return
        word = (yield from reader.word(_BARE)).strip()
        if not word:
            raise Broken("an argument has no value" if (yield from reader.peek()) else "the call is cut off")
        bare = word if word in _WORDS else number_text(word)
        said(bare if bare and types != TEXT else json_of(word, types))

    def key(self, reader: Reader, said: Said) -> Step[str]:
        if (yield from reader.accept(self.grammar.quote)):
            parts: list[str] = []
            yield from reader.until_closed([self.grammar.quote], parts.append, "a key is not closed")
            reader.at += len(self.grammar.quote)
            key = "".join(parts)
        else:
            key = yield from reader.word(_NAME)
            if not key:
                raise Broken("an argument has no name")
        yield from reader.space()
        yield from reader.expect(":", "an argument has no name")
        yield from reader.space()
        said(quoted(key) + ": ")
        return key


def _bare(word: str) -> str:
    return writable(word, _BARE)
