"""JSON calls without marks, or with marks that are often left out: Llama 3 and xLAM."""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar
from environments.parsers.json_calls import call_text, list_text, read_call, read_list
from environments.parsers.reader import Broken, Step
from environments.parsers.recovery import skip_object

_CLOSERS = {"<tool_call>": "</tool_call>", "```json": "```", "```": "```"}


class LlamaJson(Grammar):
    """`{"name": ..., "parameters": {...}}`, after `<|python_tag|>` or not; several divided by semicolons.

    An object without a name or without arguments is no call: an answer in JSON stays an answer. So does
    one in a text, without the mark, whose name is none of the offered tools'.
    """

    TAG = "<|python_tag|>"
    openers = (TAG, "{")
    noise = re.compile(r"\{+(?=\{)|\{(?=\s*[^\s\"'{])")

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, offered = context.reader, context.in_text and opener != self.TAG
        if opener == self.TAG:
            reader.at += len(opener)
            after = reader.position
            yield from reader.space()
            if (yield from reader.peek()) != "{":
                raise Broken(f"no JSON follows {opener}", after)
        while True:
            try:
                yield from read_call(context, arguments_required=True, offered=offered)
            except Broken as broken:
                # What is in an object is no call.
                read = reader.between(context.begun, reader.position + 1)
                if broken.resume is None and ('"' in read or "'" in read):
                    yield from skip_object(reader, context.begun, (self.TAG, *context.limits))
                named = "'name'" in reader.between(context.begun, reader.position)
                raise Broken(broken.reason, broken.resume, quiet=broken.quiet and not named) from None
            yield from reader.space()
            if (yield from reader.accept(";")):
                yield from reader.space()
            if (yield from reader.peek()) != "{":
                reader.go_to(context.begun)
                return
            context.passed()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "; ".join(call_text(call, "parameters") for call in calls)


class BareList(Grammar):
    """An array of calls, bare, in a code fence, or between marks: xLAM.

    In a text or a fence, without marks, only offered tools are called.
    """

    openers = ("<tool_call>", "[TOOL_CALLS]", "```json", "```", "[", "{")
    noise = re.compile(r"\[+(?=\[)|[\[{](?=\s*[^\s\[{\"'])")

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, fenced = context.reader, opener.startswith("`")
        if opener == "[" and context.after_word():
            raise Broken("an index is no list of calls", quiet=True)
        if opener == "{":
            start = reader.position
            reader.at += 1
            yield from reader.space()
            if (yield from reader.peek()) in ("'", '"'):  # an answer in JSON
                yield from skip_object(reader, start, (*self.openers[:2], *context.limits))
            raise Broken("an object is no list of calls", quiet=True)
        offered = fenced or (context.in_text and opener == "[")
        if opener != "[":
            reader.at += len(opener)
            after = reader.position
            yield from reader.space()
            if (yield from reader.peek()) != "[":
                raise Broken(f"no list of calls follows {opener}", after, quiet=fenced)
        yield from read_list(context, (*self.openers[:2], *context.limits), bare=True, offered=offered)
        if opener in _CLOSERS:
            yield from reader.space()
            if (yield from reader.accept(_CLOSERS[opener])):
                context.passed()
            reader.go_to(context.begun)

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return list_text(calls)
