"""Calls in a section, each with its arguments as one JSON object: DeepSeek V3 and V3.1, Kimi K2."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from environments.parsers.argument_types import ParameterTypes
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import CannotRender, Context, Grammar, writable
from environments.parsers.json_calls import ARGUMENTS, call_of
from environments.parsers.json_value import members, pass_value
from environments.parsers.reader import LONGEST_WORD, Broken, Step
from environments.parsers.recovery import skip_json

_WORD = re.compile(r"[^\s<`{]*")


@dataclass(frozen=True)
class Section(Grammar):
    """A section's marks, and those of each call in it. What breaks in one call leaves the others alone."""

    begin: str
    end: str
    call_begin: str
    call_end: str

    @property
    def openers(self) -> Sequence[str]:
        return (*(begin for begin, _ in self._sections), self.call_begin)

    @property
    def _sections(self) -> Sequence[tuple[str, str]]:
        """The marks around a section: those that are written, and others that are read."""
        return ((self.begin, self.end),)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, begun, good = context.reader, False, False
        ends = tuple(end for _, end in self._sections)
        if opener != self.call_begin:
            reader.at += len(opener)
        after = reader.position
        while True:
            yield from reader.space()
            if not (yield from reader.starts(self.call_begin)):
                break
            if begun:
                context.passed()
            begun, start = True, reader.position + len(self.call_begin)
            try:
                yield from self._call(context)
                context.passed()
                good = True
            except Broken as broken:
                if broken.resume is None:
                    yield from skip_json(
                        reader, start, (self.call_begin, self.call_end, *ends, *context.limits)
                    )
                    yield from reader.accept(self.call_end)
                context.give_up(broken)
        if (yield from reader.accept_any(ends)):
            if good:
                context.passed()
            after = reader.position
        if not begun:
            raise Broken("a section of calls without a call", after)
        reader.go_to(context.begun)

    @abstractmethod
    def _call(self, context: Context) -> Step[None]:
        """One call, with its marks."""

    def render(self, calls: Sequence[ParsedCall]) -> str:
        written = [
            f"{self.call_begin}{self._written(n, call)}{self.call_end}" for n, call in enumerate(calls)
        ]
        return self.begin + self._between.join(written) + self.end

    @property
    def _between(self) -> str:
        """What is written between two calls."""
        return ""

    @abstractmethod
    def _written(self, number: int, call: ParsedCall) -> str:
        """A call without its marks."""


@dataclass(frozen=True)
class DeepSeek(Section):
    """`name` separator `{...}`; V3 writes `function` separator `name`, the JSON in a fence. Both are read.

    Args:
        fenced: Written as V3 does.
    """

    begin: str = "<｜tool▁calls▁begin｜>"
    end: str = "<｜tool▁calls▁end｜>"
    call_begin: str = "<｜tool▁call▁begin｜>"
    call_end: str = "<｜tool▁call▁end｜>"
    fenced: bool = False
    SEPARATOR = "<｜tool▁sep｜>"
    FENCES = ("```json", "```")

    def _call(self, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        reader.at += len(self.call_begin)
        kind, begun = "function", reader.position
        name = yield from reader.word(_WORD)
        yield from reader.expect(self.SEPARATOR, "a call has no separator after its name")
        yield from reader.space()
        if (yield from reader.peek()) not in ("{", "`"):
            kind, name = name, (yield from reader.word(_WORD))
            yield from reader.space()
        yield from reader.accept_any(self.FENCES)
        yield from reader.space()
        if not name:
            raise Broken("the call has no name")
        if (yield from reader.peek()) != "{":
            raise Broken("no JSON object follows the call's name")
        out.start_call(name)
        yield from pass_value(reader, out.arguments)
        yield from reader.space()
        yield from reader.accept("```")
        yield from reader.space()
        if not (yield from reader.accept(self.call_end)) and (yield from reader.peek()):
            raise Broken(f"something else than {self.call_end} follows the call's JSON")
        out.finish_call()
        if kind not in ("function", ""):
            out.tell(begun, f"a call is of the type {kind!r}, and read as a function")

    @property
    def _between(self) -> str:
        return "\n" if self.fenced else ""

    def _written(self, number: int, call: ParsedCall) -> str:
        if self.fenced:
            return f"function{self.SEPARATOR}{writable(call.name, _WORD)}\n```json\n{call.arguments}\n```"
        return f"{writable(call.name, _WORD)}{self.SEPARATOR}{call.arguments}"


@dataclass(frozen=True)
class KimiK2(Section):
    """`functions.name:3` argument mark `{...}`; the number counts the calls of the conversation.

    What else is seen as an id: without `functions.`, without a number, with other signs between; a bare
    number or an id of another kind, and then the JSON has the name, or only one tool takes its keys.
    """

    begin: str = "<|tool_calls_section_begin|>"
    end: str = "<|tool_calls_section_end|>"
    call_begin: str = "<|tool_call_begin|>"
    call_end: str = "<|tool_call_end|>"
    ARGUMENTS = "<|tool_call_argument_begin|>"
    SINGULAR = ("<|tool_call_section_begin|>", "<|tool_call_section_end|>")
    _ID = re.compile(r"(?:functions\.)?([\w.\-/]*?[^\d\W][\w.\-/]*):(\d+)")
    _LOOSE = re.compile(r"functions[._:]?(.+?)(?:[:._]?\d+)?")

    @property
    def _sections(self) -> Sequence[tuple[str, str]]:
        return ((self.begin, self.end), self.SINGULAR)

    def _call(self, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        reader.at += len(self.call_begin)
        yield from reader.space()
        call_id = yield from reader.word(_WORD)
        yield from reader.space()
        yield from reader.expect(self.ARGUMENTS, "a call has no argument mark after its id")
        yield from reader.space()
        if (yield from reader.peek()) != "{":
            raise Broken("the call's arguments are no JSON object")
        if name := self._named(call_id, context.tools):
            out.start_call(name, call_id)
            yield from pass_value(reader, out.arguments)
        else:
            said: list[str] = []
            yield from pass_value(reader, said.append)
            name, arguments = self._found_in("".join(said), context.tools)
            out.start_call(name, call_id)
            out.arguments(arguments)
        yield from reader.space()
        if not (yield from reader.accept(self.call_end)) and (yield from reader.peek()):
            raise Broken(f"something else than {self.call_end} follows the call's JSON")
        out.finish_call()

    def _named(self, call_id: str, tools: Mapping[str, ParameterTypes]) -> str:
        """The name that an id has; empty where it has none."""
        if found := self._ID.fullmatch(call_id):
            return found[1]
        if call_id.startswith("functions."):
            return call_id.removeprefix("functions.")
        if call_id in tools:
            return call_id
        loose = self._LOOSE.fullmatch(call_id)
        return loose[1] if loose and (loose[1] in tools or not tools) else ""

    @staticmethod
    def _found_in(text: str, tools: Mapping[str, ParameterTypes]) -> tuple[str, str]:
        """Name and arguments of a call whose id tells nothing."""
        keys = {key for key, _ in members(text)}
        if "name" in keys and not keys.isdisjoint(ARGUMENTS):
            call = call_of(text)
            return call.name, call.arguments
        fits = [tool for tool, parameters in tools.items() if keys and parameters.takes(keys)]
        if len(fits) != 1:
            raise Broken("the call's id names no tool")
        return fits[0], text

    def _written(self, number: int, call: ParsedCall) -> str:
        for call_id in (call.id, f"functions.{call.name}:{number}"):
            found = self._ID.fullmatch(call_id)
            if found and found[1] == call.name and len(call_id) <= LONGEST_WORD:
                return f"{call_id}{self.ARGUMENTS}{call.arguments}"
        raise CannotRender(f"{call.name!r} cannot be written as an id")
