"""What a server left in the text of an answer: reasoning in tags, calls in the form of the model's family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from environments.parsers import events
from environments.parsers.base import Parsed
from environments.parsers.parser import StreamParser
from environments.policies.base import ReasoningDelta, TextDelta
from environments.policies.endpoints.bare_calls import bare_calls
from environments.policies.model_family import family_for, without_calls
from environments.policies.turn_text import read_turn


class ServedText:
    """Reads the text of one answer.

    Args:
        model: Its name tells the family.
        tools: The tools that were offered, as OpenAI writes them; without any, calls in text stay text.
    """

    def __init__(self, model: str, tools: Sequence[dict[str, Any]] = ()) -> None:
        self._family, self._tools = family_for(model), tools
        self._parser: StreamParser | None = None
        """None: no text has come."""

    def show(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        """What is to be shown of the next piece: all but calls, and what may be the beginning of a mark.

        What was shown as text before it turned out to be reasoning is shown again as that.
        """
        if not piece:
            return iter(())
        if self._parser is None:
            family = self._family if self._tools else without_calls(self._family)
            self._parser = StreamParser(family, self._tools)
        return _deltas(self._parser.feed(piece))

    def rest(self) -> Iterator[TextDelta | ReasoningDelta]:
        """What was kept back, once the text is complete."""
        return _deltas(self._parser.end() if self._parser else ())

    def read(self, text: str, has_calls: bool) -> Parsed:
        """The whole text, taken apart. Where nothing was found in it, the content is as it came.

        Args:
            has_calls: The answer has calls outside of its text: those count, what is in the text stays there.
        """
        if not text:
            return Parsed(None)
        tools = () if has_calls else self._tools
        parsed = read_turn(self._family, text, tools)
        if tools and parsed.content and not parsed.tool_calls:
            names = [tool["function"]["name"] for tool in tools]
            if calls := bare_calls(parsed.content, names):
                return Parsed(None, parsed.reasoning, calls)
        return replace(parsed, content=text) if parsed.content == text.strip() else parsed


def _deltas(told: Sequence[events.Event]) -> Iterator[TextDelta | ReasoningDelta]:
    for event in told:
        if isinstance(event, events.ContentDelta):
            yield TextDelta(event.text)
        elif isinstance(event, events.ReasoningDelta):
            yield ReasoningDelta(event.text)
