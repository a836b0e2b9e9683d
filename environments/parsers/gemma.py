"""Gemma 4 and FunctionGemma: `call:name{key:value,...}` between marks, strings between string marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.argument_types import json_of, number_text
from environments.parsers.arguments_text import quoted
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar, writable
from environments.parsers.json_value import DEEPEST, members, rewritten
from environments.parsers.reader import LONGEST_WORD, Broken, Step
from environments.parsers.tagged_values import bare

_NAME = re.compile(r"[^\s{}\[\],:<]*")
_BARE = re.compile(r"[^,{}\[\]<\n]*")
_WORDS = ("true", "false", "null")
_CLOSES = {"{": "}", "[": "]"}


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
            yield from self._arguments(name, context)
        except Broken as broken:
            raise Broken(broken.reason, self._swallowed(context)) from None
        yield from reader.space()
        closed = (yield from reader.accept(self.end)) or (yield from reader.starts(self.begin))
        if not closed and (yield from reader.peek()):
            raise Broken(f"something else than {self.end} follows the call")
        out.finish_call()
        context.passed()

    def _swallowed(self, context: Context) -> int | None:
        """Where the next call begins in the string that reading has failed after: it was never closed."""
        reader = context.reader
        before, closed, after = reader.between(context.begun, reader.position).rpartition(self.quote)
        place = before.find(self.begin, before.rfind(self.quote) + 1) if closed and not after.strip() else -1
        return context.begun + place if place > 0 else None

    def _arguments(self, name: str, context: Context) -> Step[None]:
        reader, say = context.reader, context.out.arguments
        open_: list[str] = []
        key = ""
        while True:
            sign = yield from reader.peek()
            if sign in ("{", "[") and sign:
                reader.at += 1
                open_.append(sign)
                if len(open_) > DEEPEST:
                    raise Broken(f"a value is nested more than {DEEPEST} levels deep")
                say(sign)
                first = True
            else:
                types = context.types_of(name).of(key) if len(open_) == 1 else None
                yield from self._scalar(types, context)
                first = False
            while True:
                yield from reader.space()
                comma = not first and (yield from reader.accept(","))
                yield from reader.space()
                if not comma and (yield from reader.accept(_CLOSES[open_[-1]])):
                    say(_CLOSES[open_.pop()])
                    first = False
                    if not open_:
                        return
                    continue
                if not (first or comma):
                    raise Broken("a value has no comma or closing bracket where one must be")
                if not first:
                    say(", ")
                if open_[-1] == "{":
                    said = yield from self._pass_key(context)
                    key = said if len(open_) == 1 else key
                break

    def _pass_key(self, context: Context) -> Step[str]:
        reader = context.reader
        if (yield from reader.accept(self.quote)):
            parts: list[str] = []
            yield from reader.until_closed([self.quote], parts.append, "a key is not closed")
            reader.at += len(self.quote)
            key = "".join(parts)
        else:
            key = yield from reader.word(_NAME)
            if not key:
                raise Broken("an argument has no name")
        yield from reader.space()
        if not (yield from reader.accept(":")):
            raise Broken("an argument has no name")
        yield from reader.space()
        context.out.arguments(quoted(key) + ": ")
        return key

    def _scalar(self, types: frozenset[str] | None, context: Context) -> Step[None]:
        reader, say = context.reader, context.out.arguments
        if (yield from reader.accept(self.quote)):
            parts: list[str] = []
            typed = self.all_strings and types is not None and types != {"string"}
            if not typed:
                say('"')
            said = parts.append if typed else lambda text: say(quoted(text)[1:-1])
            yield from reader.until_closed([self.quote], said, "a string is not closed")
            reader.at += len(self.quote)
            say(json_of("".join(parts), types or frozenset()) if typed else '"')
            return
        word = (yield from reader.word(_BARE)).strip()
        if not word:
            raise Broken("an argument has no value" if (yield from reader.peek()) else "the call is cut off")
        say(word if word in _WORDS else number_text(word) or json_of(word, types or frozenset()))

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


def _bare(word: str) -> str:
    return writable(word, _BARE)
