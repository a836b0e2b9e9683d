"""The calls of a turn that no result answers yet, found in constant time: by id, by name, or the next."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence

from rl_cli.core.messages import ToolCall

_Key = tuple[str | None, str | None]
"""An id and a name; None for any."""


class _Line:
    """Some of a turn's calls, in their order, by their places in the turn."""

    def __init__(self) -> None:
        self.places: deque[int] = deque()
        """With answered ones, which are passed over when they come first."""
        self.open = 0
        self.with_id = 0
        """Of the open ones, those that came with an id."""


class Unanswered:
    """The calls of one turn.

    Args:
        calls: All calls of a turn, with ids.
        made: The ids that the calls did not come with.
    """

    def __init__(self, calls: Sequence[ToolCall], made: set[str]) -> None:
        self._calls = calls
        self._with_id = [call["id"] not in made for call in calls]
        self._answered = [False] * len(calls)
        self._by_id_and_name: defaultdict[_Key, _Line] = defaultdict(_Line)
        for place, with_id in enumerate(self._with_id):
            for line in self._lines(place):
                line.places.append(place)
                line.open += 1
                line.with_id += with_id

    def __bool__(self) -> bool:
        return self._by_id_and_name[None, None].open > 0

    def take(self, call_id: str, name: str | None) -> ToolCall:
        """The first of this id, of this name too if there is one; it is answered from now on."""
        return self._take(self._first_open((call_id, name), (call_id, None)))

    def take_only(self, name: str | None) -> ToolCall | int:
        """The call that a result without an id answers, or how many it may be one of.

        It is the only one of its name, or else the only one; the next where the calls came without ids too.
        """
        line = self._first_open((None, name), (None, None))
        sure = line.open == 1 or (line.open and not line.with_id)
        return self._take(line) if sure else line.open

    def _lines(self, place: int) -> Iterator[_Line]:
        call = self._calls[place]
        for call_id in (call["id"], None):
            for name in (call["function"]["name"], None):
                yield self._by_id_and_name[call_id, name]

    def _first_open(self, key: _Key, other: _Key) -> _Line:
        line = self._by_id_and_name.get(key)
        return line if line and line.open else self._by_id_and_name[other]

    def _take(self, line: _Line) -> ToolCall:
        while self._answered[place := line.places.popleft()]:
            pass
        self._answered[place] = True
        for other in self._lines(place):
            other.open -= 1
            other.with_id -= self._with_id[place]
        return self._calls[place]
