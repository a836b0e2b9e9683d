"""What a parser has found so far, and the events that tell of it."""

from __future__ import annotations

from environments.parsers.base import Parsed, ParsedCall, ParseError
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
from environments.parsers.reader import Broken

MOST_BROKEN = 1000
"""Of what was begun as a call and is none, so many are told of one by one; then they are counted."""


class _Text:
    """Text without the white space around it: that of its end is held back until something follows."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._held: list[str] = []

    def add(self, text: str) -> str:
        """What of it can be told now."""
        if not self.parts:
            text = text.lstrip()
        solid = text.rstrip()
        if not solid:
            if self.parts and text:
                self._held.append(text)
            return ""
        told = "".join([*self._held, solid])
        self._held = [text[len(solid) :]] if len(solid) < len(text) else []
        self.parts.append(told)
        return told

    def whole(self) -> str | None:
        return "".join(self.parts) or None


class Output:
    """Collects a turn.

    Args:
        silent_between: Text between two calls is no content, but told of in the errors.

    Attributes:
        events: Those that nobody has taken yet; None where nobody will: floods of marks make very many.
    """

    def __init__(self, silent_between: bool = False) -> None:
        self.events: list[Event] | None = None
        self.calls: list[ParsedCall] = []
        self._silent_between = silent_between
        self._begin()

    def _begin(self) -> None:
        self._content, self._reasoning = _Text(), _Text()
        self.calls.clear()
        self.errors: list[ParseError] = []
        self._broken, self._broken_from = 0, 0
        self._name: str | None = None
        self._id = ""
        self._arguments: list[str] = []
        self._between: list[str] = []
        self._between_at = 0

    def _say(self, event: Event) -> None:
        if self.events is not None:
            self.events.append(event)

    def content(self, text: str, position: int = 0) -> None:
        if self._silent_between and self.calls:
            if not self._between:
                self._between_at = position
            self._between.append(text)
        elif told := self._content.add(text):
            self._say(ContentDelta(told))

    def reasoning(self, text: str) -> None:
        if told := self._reasoning.add(text):
            self._say(ReasoningDelta(told))

    def start_call(self, name: str, id: str = "") -> None:
        """Raises Broken where the name is empty."""
        if not name.strip():
            raise Broken("the call has no name")
        self._name, self._id = name, id
        self._say(CallStarted(len(self.calls), name))

    def arguments(self, text: str) -> None:
        if text:
            self._arguments.append(text)
            self._say(ArgumentsDelta(len(self.calls), text))

    def finish_call(self) -> None:
        assert self._name is not None
        self._say(CallFinished(len(self.calls)))
        self._tell_of_between()
        self.calls.append(ParsedCall(self._name, "".join(self._arguments), self._id))
        self._name, self._arguments = None, []

    def call(self, name: str, arguments: str, id: str = "") -> None:
        """A call that is read at once."""
        self.start_call(name, id)
        self.arguments(arguments)
        self.finish_call()

    def break_call(self, position: int, reason: str, quiet: bool = False) -> None:
        """What begins at `position` is no call; it may have been started, or not. Quiet: it is no error."""
        if self._name is not None:
            self._say(CallBroken(len(self.calls), reason))
        self._name, self._arguments = None, []
        if quiet:
            return
        self._broken += 1
        if self._broken <= MOST_BROKEN:
            self.tell(position, reason)
        elif self._broken == MOST_BROKEN + 1:
            self._broken_from = position

    def tell(self, position: int, reason: str) -> None:
        """Something that was read and is in no call."""
        self.errors.append(ParseError(position, reason))

    def restart(self) -> None:
        self._begin()
        self._say(Restarted())

    def end(self) -> None:
        """The text has ended: what stands after the last call is content."""
        text = "".join(self._between)
        self._between = []
        if told := self._content.add(text):
            self._say(ContentDelta(told))

    def _tell_of_between(self) -> None:
        text = "".join(self._between).strip()
        self._between = []
        if text:
            self.tell(self._between_at, f"text between two calls: {text}")

    def parsed(self) -> Parsed:
        errors = list(self.errors)
        if (more := self._broken - MOST_BROKEN) > 0:
            errors.append(ParseError(self._broken_from, f"here and after it, {more} more that are no calls"))
        return Parsed(self._content.whole(), self._reasoning.whole(), list(self.calls), errors)
