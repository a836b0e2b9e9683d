"""Gemma 4 and FunctionGemma: `call:name{key:value,...}` between marks, strings between string marks."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from environments.parsers.argument_types import json_of, number_text, types_of
from environments.parsers.arguments_text import quoted
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar
from environments.parsers.json_value import DEEPEST
from environments.parsers.reader import Broken, Step

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
    def openers(self) -> Sequence[str]:  # type: ignore[override]
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
        yield from self._arguments(name, context)
        yield from reader.space()
        closed = (yield from reader.accept(self.end)) or (yield from reader.starts(self.begin))
        if not closed and (yield from reader.peek()):
            raise Broken(f"something else than {self.end} follows the call")
        out.finish_call()
        context.passed()

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
                types = types_of(context.tools.get(name), key) if len(open_) == 1 else None
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
                    said = yield from self._key(context)
                    key = said if len(open_) == 1 else key
                break

    def _key(self, context: Context) -> Step[str]:
        reader = context.reader
        if (yield from reader.accept(self.quote)):
            parts: list[str] = []
            begun = reader.position
            yield from reader.until_closed([self.quote], parts.append, "a key is not closed", begun)
            reader.at += len(self.quote)
            key = "".join(parts)
        else:
            key = yield from reader.word(_NAME)
        yield from reader.space()
        if not key or not (yield from reader.accept(":")):
            raise Broken("an argument has no name")
        yield from reader.space()
        context.out.arguments(quoted(key) + ": ")
        return key

    def _scalar(self, types: frozenset[str] | None, context: Context) -> Step[None]:
        reader, say = context.reader, context.out.arguments
        if (yield from reader.accept(self.quote)):
            begun, parts = reader.position, list[str]()
            typed = self.all_strings and types is not None and types != {"string"}
            if not typed:
                say('"')
            said = parts.append if typed else lambda text: say(quoted(text)[1:-1])
            yield from reader.until_closed([self.quote], said, "a string is not closed", begun)
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
        return f"call:{_key(call.name)}{self._object(json.loads(call.arguments), top=True)}"

    def _object(self, value: dict[str, Any], top: bool = False) -> str:
        pairs = (f"{_key(key)}:{self._value(inside, top)}" for key, inside in value.items())
        return "{" + ",".join(pairs) + "}"

    def _value(self, value: Any, top: bool = False) -> str:
        if isinstance(value, str) or (self.all_strings and top):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            if self.quote in text:
                raise CannotRender(f"{self.quote} stands in a value")
            return f"{self.quote}{text}{self.quote}"
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return "[" + ",".join(map(self._value, value)) + "]"
        return json.dumps(value)


def _key(text: str) -> str:
    if not text or not _NAME.fullmatch(text) or len(text) > 256:
        raise CannotRender(f"{text!r} cannot be written as a key")
    return text
