"""What a reader of the stream ends up with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from environments.parsers.base import Parsed
from environments.parsers.events import (
    ArgumentsDelta,
    CallBroken,
    CallFinished,
    CallStarted,
    ContentDelta,
    Event,
    ReasoningDelta,
    Restarted,
)
from environments.parsers.parser import Family, StreamParser

Pieces = Iterable[str]


def in_pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def splits(text: str, longest: int = 2000) -> Iterable[Pieces]:
    """All ways to split in two, where the text is no longer than that, and pieces of 1, 3, 7 characters."""
    yield from (in_pieces(text, size) for size in (1, 3, 7))
    if len(text) <= longest:
        yield from ([text[:at], text[at:]] for at in range(1, len(text)))


def stream(family: Family, tools: Iterable[Mapping[str, Any]], pieces: Pieces) -> Parsed:
    """The result of reading piece by piece; what the events told is the same."""
    parser, events = StreamParser(family, tools), list[Event]()
    for piece in pieces:
        events += parser.feed(piece)
    events += parser.end()
    parsed = parser.parsed()
    told = _Told()
    for event in events:
        told.take(event)
    assert told.call is None, "a call was started and neither finished nor broken"
    assert (told.content or None, told.reasoning or None) == (parsed.content, parsed.reasoning)
    assert told.calls == [(call.name, call.arguments) for call in parsed.tool_calls]
    return parsed


class _Told:
    def __init__(self) -> None:
        self.content = self.reasoning = ""
        self.calls: list[tuple[str, str]] = []
        self.call: tuple[str, str] | None = None

    def take(self, event: Event) -> None:
        match event:
            case ContentDelta(text):
                assert text, "an event tells nothing"
                self.content += text
            case ReasoningDelta(text):
                assert text, "an event tells nothing"
                self.reasoning += text
            case CallStarted(index, name):
                assert (self.call, index) == (None, len(self.calls))
                assert name
                self.call = (name, "")
            case ArgumentsDelta(index, text):
                assert self.call
                assert index == len(self.calls)
                self.call = (self.call[0], self.call[1] + text)
            case CallFinished(index):
                assert self.call
                assert index == len(self.calls)
                assert isinstance(json.loads(self.call[1]), dict)
                self.calls.append(self.call)
                self.call = None
            case CallBroken(index):
                assert self.call
                assert index == len(self.calls)
                self.call = None
            case Restarted():
                self.content = self.reasoning = ""
                self.calls.clear()
                self.call = None
