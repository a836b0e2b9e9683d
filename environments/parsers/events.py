"""What a stream parser tells while the text comes.

Calls are numbered from 0, in order. The text of a call's arguments only grows. Two events take something
back: `CallBroken` a call, whose text follows as content, and `Restarted` everything; both are rare.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ContentDelta:
    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    text: str


@dataclass(frozen=True)
class CallStarted:
    """The name is whole, and comes once."""

    index: int
    name: str


@dataclass(frozen=True)
class ArgumentsDelta:
    index: int
    text: str
    """Joined, those of a call are its arguments: JSON text."""


@dataclass(frozen=True)
class CallFinished:
    index: int


@dataclass(frozen=True)
class CallBroken:
    """The call cannot be read, or the text has ended in it: it does not count. Its number is free again."""

    index: int
    reason: str


@dataclass(frozen=True)
class Restarted:
    """What was told so far is void: it has turned out to be reasoning, and is told again as that."""


Event = ContentDelta | ReasoningDelta | CallStarted | ArgumentsDelta | CallFinished | CallBroken | Restarted
