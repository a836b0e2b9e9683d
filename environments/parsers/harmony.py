"""The harmony form of gpt-oss: messages with a channel, and calls as messages to `functions.name`.

`analysis` is reasoning, `final` is content, and so is `commentary` to nobody. Calls come on `commentary` or
`analysis`; the bare name of an offered tool is one too. What is sent to somebody else, or on another channel,
is no call of the client: it stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from environments.parsers.base import ParsedCall
from environments.parsers.grammar import Context, Grammar, writable
from environments.parsers.json_value import pass_value
from environments.parsers.reader import Broken, Step
from environments.parsers.recovery import skip_json

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
NEXT = (START, CHANNEL)
FUNCTIONS = "functions."
CONTENT_TYPES = ("json", "code", "text")
_HEADER = re.compile(r"[^<]*")
_NAME = re.compile(r"[^\s<]+")
LONGEST_NAME = 200
"""Characters: it stands in a header."""


@dataclass
class _Header:
    """Of a message: who says it, on which channel, to whom."""

    role: str = ""
    channel: str = ""
    recipient: str = ""
    unread: list[str] = field(default_factory=list)

    def read_words(self, first: Literal["role", "channel"], text: str) -> None:
        words = text.split()
        if words and not words[0].startswith("to="):
            setattr(self, first, words.pop(0))
        for word in words:
            if word.startswith("to=") and word != "to=" and not self.recipient:
                self.recipient = word.removeprefix("to=")
            elif word not in CONTENT_TYPES:
                self.unread.append(word)


class Harmony(Grammar):
    openers = (START, CHANNEL)

    def read(self, opener: str, context: Context) -> Step[None]:
        reader, out, begun = context.reader, context.out, context.begun
        header = yield from self._header(context)
        channel, recipient = header.channel, header.recipient
        called = recipient.startswith(FUNCTIONS) or recipient in context.tools
        foreign = header.role not in ("", "assistant")
        if called and channel in ("commentary", "analysis") and not foreign:
            yield from self._call(recipient.removeprefix(FUNCTIONS), context)
        elif recipient or foreign or channel not in ("analysis", "final", "commentary"):
            # In what is sent to others, marks may be quoted.
            if recipient:
                yield from self._pass_json(context)
            yield from reader.until((*ENDS, START))
            yield from reader.accept_any(ENDS)
            raise Broken("a message is no call, and not to the reader", quiet=True)
        else:
            context.passed()
            say = out.reasoning if channel == "analysis" else context.say_content
            yield from reader.until((*ENDS, *NEXT), say)
            say("\n")
            yield from reader.accept_any(ENDS)
        if header.unread:
            out.tell(begun, f"a message's header has more than is read: {' '.join(header.unread)}")
        context.passed()

    @staticmethod
    def _header(context: Context) -> Step[_Header]:
        """The reader stands at the message's text then."""
        reader, author, kind = context.reader, "", ""
        if (yield from reader.accept(START)):
            author = yield from reader.word(_HEADER)
        if not (yield from reader.accept(CHANNEL)):
            raise Broken("a message has no channel", quiet=True)
        channel = yield from reader.word(_HEADER)
        if (yield from reader.accept(CONSTRAIN)):
            kind = yield from reader.word(_HEADER)
        yield from reader.expect(MESSAGE, f"{MESSAGE} is missing in a message")
        header = _Header()
        header.read_words("role", author)
        header.read_words("channel", channel)
        header.unread += [word for word in kind.split() if word not in CONTENT_TYPES]
        return header

    @staticmethod
    def _pass_json(context: Context) -> Step[None]:
        """Passes the JSON that comes next, if there is some."""
        reader = context.reader
        yield from reader.space()
        start = reader.position
        try:
            yield from pass_value(reader)
        except Broken:
            reader.go_to(start)

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
            yield from skip_json(reader, start, (*ENDS, *NEXT, *context.limits))
            yield from reader.accept_any(ENDS)
            raise Broken(broken.reason) from None
        out.finish_call()

    def render(self, calls: Sequence[ParsedCall]) -> str:
        return "".join(
            f"{START}assistant{CHANNEL}commentary to={FUNCTIONS}{writable(call.name, _NAME, LONGEST_NAME)}"
            f" {CONSTRAIN}json{MESSAGE}{call.arguments}<|call|>"
            for call in calls
        )
