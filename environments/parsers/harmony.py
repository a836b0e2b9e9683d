"""The harmony form of gpt-oss: messages with a channel, and calls as messages to `functions.name`.

`analysis` is reasoning, `final` is content, and so is `commentary` to nobody. Calls come on `commentary` or
`analysis`; the bare name of an offered tool is one too. What is sent to somebody else, or on another channel,
is no call of the client: it stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar, writable
from environments.parsers.json_value import pass_value
from environments.parsers.reader import Broken, Step
from environments.parsers.recovery import skip_json

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
NEXT = (START, CHANNEL)
FUNCTIONS = "functions."
_HEADER = re.compile(r"[^<]*")
_NAME = re.compile(r"[^\s<]+")
LONGEST_NAME = 200
"""Characters: it stands in a header."""
_RECIPIENT = re.compile(r"\bto=(\S+)")


class Harmony(Grammar):
    openers = (START, CHANNEL)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        channel, recipient = yield from self._header(opener, context)
        called = recipient.startswith(FUNCTIONS) or recipient in context.tools
        if called and channel in ("commentary", "analysis"):
            yield from self._call(recipient.removeprefix(FUNCTIONS), context)
        elif recipient or channel not in ("analysis", "final", "commentary"):
            yield from reader.until((*ENDS, *NEXT))
            yield from reader.accept_any(ENDS)
            raise Broken(
                f"a message of channel {channel!r} to {recipient or 'nobody'!r} is no call", quiet=True
            )
        else:
            context.passed()
            say = out.reasoning if channel == "analysis" else context.say_content
            yield from reader.until((*ENDS, *NEXT), say)
            say("\n")
            yield from reader.accept_any(ENDS)
        context.passed()

    @staticmethod
    def _header(opener: str, context: Context) -> Step[tuple[str, str]]:
        """Channel and recipient of a message; the reader stands at its text then."""
        reader, said = context.reader, ""
        if (yield from reader.accept(START)):
            said = yield from reader.word(_HEADER)
        if not (yield from reader.accept(CHANNEL)):
            raise Broken("a message has no channel", quiet=True)
        named = (yield from reader.word(_HEADER)).strip()
        if (yield from reader.accept(CONSTRAIN)):
            yield from reader.word(_HEADER)
        yield from reader.expect(MESSAGE, f"{MESSAGE} is missing in a message")
        recipient = _RECIPIENT.search(f"{said} {named}")
        return (named.split() or [""])[0], recipient[1] if recipient else ""

    @staticmethod
    def _call(name: str, context: Context) -> Step[None]:
        reader, out = context.reader, context.out
        yield from reader.space()
        start = reader.position
        try:
            if (yield from reader.peek()) != "{":
                raise Broken("the call's arguments are no JSON object")
            out.start_call(name)
            yield from pass_value(reader, out.arguments)
            yield from reader.space()
            closed = (yield from reader.accept_any(ENDS)) or (yield from reader.peek()) == ""
            if not (closed or (yield from reader.starts(START)) or (yield from reader.starts(CHANNEL))):
                raise Broken("something follows the JSON of a call")
        except Broken as broken:
            yield from skip_json(reader, start, (*ENDS, *NEXT))
            yield from reader.accept_any(ENDS)
            raise Broken(broken.reason) from None
        out.finish_call()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "".join(
            f"{START}assistant{CHANNEL}commentary to={FUNCTIONS}{writable(call.name, _NAME, LONGEST_NAME)}"
            f" {CONSTRAIN}json{MESSAGE}{call.arguments}<|call|>"
            for call in calls
        )
