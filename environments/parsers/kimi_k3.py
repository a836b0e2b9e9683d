"""Kimi K3: `<|open|>call tool="f" index="1"<|sep|>` with typed arguments; the answer in `response` tags."""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.argument_types import ANY, TEXT
from environments.parsers.arguments_text import ArgumentsWriter
from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar, writable
from environments.parsers.json_value import members
from environments.parsers.reader import Broken, Step
from environments.parsers.tagged_values import Tags, TypedArguments, bare, no_call, pass_text, skip_call

OPEN, CLOSE, SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"
TOOLS, RESPONSE = (f"{OPEN}{name}{SEPARATOR}" for name in ("tools", "response"))
_NAME = re.compile(r"[a-z_]*")
_VALUE = re.compile(r"[^\"<\n]*")
_KINDS = {'"': "string", "t": "boolean", "f": "boolean", "n": "null", "{": "object", "[": "array"}
"""By the first character of the JSON; all else is a number."""


def _end(name: str) -> str:
    return f"{CLOSE}{name}{SEPARATOR}"


CALL, ARGUMENT = f"{OPEN}call ", f"{OPEN}argument "
_TAGS = Tags(
    value=ARGUMENT,
    closer=_end("argument"),
    followers=(ARGUMENT, _end("call")),
    call=CALL,
    named=SEPARATOR,
    argument=(ARGUMENT, SEPARATOR),
    end=_end("call"),
    between=(_end("tools"), TOOLS),
    never=(ARGUMENT,),
)


class KimiK3(Grammar):
    openers = (TOOLS, RESPONSE)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader = context.reader
        reader.at += len(opener)
        if opener == RESPONSE:
            context.passed()
            yield from reader.until([_end("response"), *context.limits], context.say_content)
            yield from reader.accept(_end("response"))
            return
        found = False
        while True:
            yield from reader.space()
            if not (yield from reader.starts(CALL)):
                break
            if found:
                context.passed()
            found = True
            try:
                yield from self._call(context)
            except Broken as broken:
                if broken.resume is None:
                    yield from skip_call(reader, _TAGS, context.limits)
                context.give_up(broken)
        if not found:
            reason = "a section of calls without a call"
            raise (yield from no_call(reader, _TAGS, context.limits, reason))
        if (yield from reader.accept(_end("tools"))):
            context.passed()
        reader.go_to(context.begun)

    def _call(self, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        reader.at += len(CALL)
        name = (yield from self._attributes(context, ("tool", "index"))).get("tool", "")
        if not name:
            raise Broken("a call names no tool")
        out.start_call(name)
        writer = ArgumentsWriter(out, reader)
        arguments = TypedArguments(writer, context.types_of(name))
        while True:
            yield from reader.space()
            if (yield from reader.accept(_end("call"))):
                break
            yield from reader.expect(ARGUMENT, "something else than an argument stands in a call")
            given = yield from self._attributes(context, ("key", "type"))
            if "key" not in given:
                raise Broken("an argument has no key")
            types = TEXT if given.get("type", "string") == "string" else ANY - TEXT
            said = arguments.begin(given["key"], types)
            yield from pass_text(reader, _TAGS, said)
            arguments.end()
        writer.end()
        out.finish_call()
        context.passed()

    @staticmethod
    def _attributes(context: Context, known: Sequence[str]) -> Step[dict[str, str]]:
        reader, found = context.reader, dict[str, str]()
        start = reader.position
        while True:
            yield from reader.space()
            if (yield from reader.accept(SEPARATOR)):
                break
            name = yield from reader.word(_NAME)
            if not name or not (yield from reader.accept('="')):
                raise Broken("a tag's attributes cannot be read")
            value = yield from reader.word(_VALUE)
            yield from reader.expect('"', "an attribute's quotes are not closed")
            found[name] = value.replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&")
        unread = [name for name in found if name not in known]
        if found.get("type", "string") not in (*_KINDS.values(), "number"):
            unread.append("type")
        if not found.get("index", "0").isdigit():
            unread.append("index")
        if unread:
            given = " ".join(f'{name}="{found[name]}"' for name in unread)
            context.out.tell(start, f"a tag has attributes that mean nothing here: {given}")
        return found

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return TOOLS + "".join(self._written(n, call) for n, call in enumerate(calls, 1)) + _end("tools")

    @staticmethod
    def _written(number: int, call: ParsedCall) -> str:
        parts = [f'{OPEN}call tool="{_attribute(call.name)}" index="{number}"{SEPARATOR}']
        for key, value in members(call.arguments):
            kind, text = _KINDS.get(value[0], "number"), bare(value, _TAGS.hold)
            tag = f'{ARGUMENT}key="{_attribute(key)}" type="{kind}"{SEPARATOR}'
            parts.append(f"{tag}{text}{_TAGS.closer}")
        return "".join([*parts, _end("call")])


def _attribute(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return writable(escaped, _VALUE)
