"""MiniMax M3: nested tags, each after a mark: `<invoke name="f">`, `<key>value</key>`, in lists `<item>`.

A value without tags in it is of the type that the schema says; one with tags is an object, or a list where
all of them are items.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.argument_types import ANY, ParameterTypes, json_of
from environments.parsers.arguments_text import ArgumentsWriter, quoted
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar, writable
from environments.parsers.json_value import DEEPEST, members
from environments.parsers.reader import Broken, Step
from environments.parsers.tagged_values import bare

MARK = "]<]minimax[>["
OPEN, CLOSE = f"{MARK}<tool_call>", f"{MARK}</tool_call>"
INVOKE, END_INVOKE = f'{MARK}<invoke name="', f"{MARK}</invoke>"
_NAME = re.compile(r"[^\"<>\n]*")
_KEY = re.compile(r"[^<>/\n]*")
_TAG = f"{MARK}<"


class MiniMaxM3(Grammar):
    openers = (OPEN, INVOKE)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, found = context.reader, False
        if opener == OPEN:
            reader.at += len(OPEN)
        after = reader.position
        while True:
            yield from reader.space()
            if not (yield from reader.accept(INVOKE)):
                break
            try:
                yield from self._call(context)
            except Broken:
                yield from self._skip(context)
                raise
            found = True
        if not found:
            raise Broken("no call follows the opening tag", after)
        if (yield from reader.accept(CLOSE)):
            context.passed()
        reader.go_to(context.begun)

    @staticmethod
    def _skip(context: Context) -> Step[None]:
        """From where a call has failed to after its end; the calls in its values are none."""
        reader, depth = context.reader, 1
        while (mark := (yield from reader.until((INVOKE, END_INVOKE, CLOSE, *context.limits)))) and depth:
            if mark not in (INVOKE, END_INVOKE):
                return
            reader.at += len(mark)
            depth += 1 if mark == INVOKE else -1
            if not depth:
                return

    def _call(self, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        name = yield from reader.word(_NAME)
        yield from reader.expect('">', "a call's name is not closed")
        if not name:
            raise Broken("a call has no name")
        out.start_call(name)
        writer = ArgumentsWriter(out, reader)
        while True:
            yield from reader.space()
            if (yield from reader.accept(END_INVOKE)):
                break
            yield from reader.expect(f"{MARK}<", "something else than an argument stands in a call")
            key = yield from reader.word(_KEY)
            yield from reader.expect(">", "an argument's tag is not closed")
            writer.key(key)
            writer.value((yield from self._value(key, context.types_of(name), context)))
        writer.end()
        out.finish_call()
        context.passed()

    @staticmethod
    def _value(key: str, types: ParameterTypes, context: Context) -> Step[str]:
        """The value of an argument as JSON; passes its closing tag. Nothing recurses."""
        reader = context.reader
        levels: list[_Level] = [_Level(key)]
        while True:
            level = levels[-1]
            yield from reader.until_closed([f"{MARK}<"], level.text.append, "a value is not closed")
            reader.at += len(MARK) + 1
            closes = yield from reader.accept("/")
            name = yield from reader.word(_KEY)
            yield from reader.expect(">", "a tag in a value is not closed")
            if not closes:
                if len(levels) == DEEPEST:
                    raise Broken(f"a value is nested more than {DEEPEST} levels deep")
                levels.append(_Level(name))
            elif name != level.name:
                raise Broken("tags in a value are not closed in order")
            else:
                text = level.json(types.of(*(level.name for level in levels)), outermost=len(levels) == 1)
                levels.pop()
                if not levels:
                    return text
                levels[-1].members.append((name, text))

    def render(self, calls: Sequence[ParsedCall]) -> str:
        lines = [OPEN]
        for call in calls:
            lines.append(f'{INVOKE}{writable(call.name, _NAME)}">')
            lines += [_element(key, value) for key, value in members(call.arguments)]
            lines.append(END_INVOKE)
        return "\n".join([*lines, CLOSE])


class _Level:
    """An open tag: its text, or what stands in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text: list[str] = []
        self.members: list[tuple[str, str]] = []

    def json(self, types: frozenset[str], outermost: bool) -> str:
        """What it holds. Further inside, where the schema says nothing, what is JSON counts as that."""
        text = "".join(self.text)
        if not self.members and not text.strip() and len(types & {"array", "object"}) == len(types) == 1:
            return "[]" if "array" in types else "{}"
        if not self.members:
            return json_of(text, types if types or outermost else ANY - {"object", "array"})
        if text.strip():
            raise Broken("text stands between the tags of a value")
        if all(name == "item" for name, _ in self.members):
            return "[" + ", ".join(value for _, value in self.members) + "]"
        return "{" + ", ".join(f"{quoted(name)}: {value}" for name, value in self.members) + "}"


def _element(key: str, value: str) -> str:
    return f"{MARK}<{writable(key, _KEY)}>{bare(value, lambda text: _TAG not in text)}{MARK}</{key}>"
