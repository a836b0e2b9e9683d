"""Mistral: `[TOOL_CALLS]name[ARGS]{...}` for each call; before v11 `[TOOL_CALLS] [{"name", "arguments"}]`.

Both are read, whichever is written. Also `[CALL_ID]` between name and `[ARGS]`, and no `[ARGS]` at all, as
it is left where special tokens are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar, writable
from environments.parsers.json_calls import list_text, read_calls
from environments.parsers.json_value import pass_value
from environments.parsers.reader import Broken, Step
from environments.parsers.recovery import skip_json, skip_object

MARK, ARGS, CALL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_NAME = re.compile(r"[\w.:/-]*")
_ID = re.compile(r"[A-Za-z0-9]*")


@dataclass(frozen=True)
class Mistral(Grammar):
    """Args:
    as_list: Calls are written as before v11, in an array.
    """

    as_list: bool = False
    openers = (MARK,)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader = context.reader
        reader.at += len(MARK)
        after = reader.position
        yield from reader.space()
        if (yield from reader.peek()) in ("[", "{"):
            yield from read_calls(context, (MARK, *context.limits))
        else:
            yield from self._named_call(context, after)
        context.passed()

    def _named_call(self, context: Context, after: int) -> Step[None]:
        reader, out = context.reader, context.out
        name = yield from reader.word(_NAME)
        yield from reader.space()
        call_id = ""
        if (yield from reader.accept(CALL_ID)):
            call_id = yield from reader.word(_ID)
            yield from reader.space()
        yield from reader.accept(ARGS)
        yield from reader.space()
        if not name or (yield from reader.peek()) != "{":
            reader.go_to(after)
            # What JSON on the same line quotes is no call.
            if (yield from reader.until((MARK, "{", "\n", *context.limits))) == "{":
                yield from skip_object(reader, reader.position, (MARK, *context.limits))
            raise Broken(f"no name with arguments follows {MARK}")
        out.start_call(name, call_id)
        start = reader.position
        try:
            yield from pass_value(reader, out.arguments)
        except Broken:
            yield from skip_json(reader, start, (MARK, *context.limits))
            raise
        out.finish_call()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        if self.as_list:
            return f"{MARK} {list_text(calls)}"
        return "".join(f"{MARK}{writable(call.name, _NAME)}{ARGS}{call.arguments}" for call in calls)
