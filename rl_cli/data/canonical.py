"""A conversation in canonical form: each result right after the turn that called, with its id and name.

A result goes to the latest turn with an unanswered call of its id, wherever it stands after it; results of
one turn keep the order in which they came; a second result for a call is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from rl_cli.core.messages import Message, ToolCall
from rl_cli.data.errors import Unconvertible
from rl_cli.data.shapes import read_message
from rl_cli.data.unanswered import Unanswered

ENDED = ("stop", "end_turn", "stop_sequence")
"""Values of `finish_reason` and `stop_reason` of an answer that is whole."""


@dataclass
class Conversation:
    messages: list[Message]
    marks: set[str]
    completed: bool
    """The conversation ends with a whole answer."""


@dataclass(eq=False)
class _Turn:
    """A message, and the results of its calls as they came."""

    message: Message
    unanswered: Unanswered
    results: list[Message] = field(default_factory=list)


def canonical(messages: Any) -> Conversation:
    """Canonical messages, the same for messages that are canonical.

    Args:
        messages: In any of the forms of `shapes`.

    Raises:
        Unconvertible: A result answers no call, or could answer several; or these are no messages.
    """
    if not isinstance(messages, list) or not messages:
        raise Unconvertible("no messages")
    marks: set[str] = set()
    read = [one for message in messages for one in read_message(message, marks)]
    turns = _matched(read, marks)
    if any(turn.unanswered for turn in turns):
        marks.add("unanswered_call")
    placed = [message for turn in turns for message in (turn.message, *turn.results)]
    return Conversation(placed, marks, _completed(placed, messages[-1], marks))


def _matched(messages: Sequence[Message], marks: set[str]) -> list[_Turn]:
    turns: list[_Turn] = []
    callers: defaultdict[str, list[_Turn]] = defaultdict(list)  # id -> turns, once per unanswered call
    caller: _Turn | None = None  # the latest turn with calls
    names = _NewNames(messages)
    for message in messages:
        if message["role"] == "tool":
            _answer(message, callers, caller, marks)
            continue
        calls = message.get("tool_calls", [])
        made: set[str] = set()
        for call in calls:
            if not call["id"]:
                call["id"] = names.next()
                made.add(call["id"])
        turn = _Turn(message, Unanswered(calls, made))
        turns.append(turn)
        caller = turn if calls else caller
        for call in calls:
            callers[call["id"]].append(turn)
    return turns


class _NewNames:
    """Ids for calls that have none."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._used = {call["id"] for message in messages for call in message.get("tool_calls", ())}
        self._count = 0

    def next(self) -> str:
        while True:
            self._count += 1
            if (name := f"call_{self._count}") not in self._used:
                return name


def _answer(result: Message, callers: dict[str, list[_Turn]], caller: _Turn | None, marks: set[str]) -> None:
    """Gives a result to the latest turn with an unanswered call of its id."""
    if call_id := result.get("tool_call_id"):
        if call_id not in callers:
            raise Unconvertible(f"a result for the call {call_id[:80]!r}, which was not made before")
        if not callers[call_id]:
            marks.add("second_result_dropped")
            return
        turn = callers[call_id].pop()
        call = turn.unanswered.take(call_id, result.get("name"))
    else:
        turn, call = _without_id(result, caller)
        callers[call["id"]].remove(turn)
    turn.results.append({**result, "tool_call_id": call["id"], "name": call["function"]["name"]})


def _without_id(result: Message, caller: _Turn | None) -> tuple[_Turn, ToolCall]:
    """The turn and the call that a result without an id answers."""
    call = caller.unanswered.take_only(result.get("name")) if caller else 0
    if caller is None or isinstance(call, int):
        which = f"may be one of {call}" if call else "was not made before, or is answered"
        raise Unconvertible(f"a result without the id of its call, which {which}")
    return caller, call


def _completed(messages: list[Message], source: dict[str, Any], marks: set[str]) -> bool:
    last = messages[-1]
    if last["role"] != "assistant" or last.get("tool_calls"):
        marks.add("no_answer")
        return False
    if not (last["content"] or "").strip():
        marks.add("empty_answer")
        return False
    reason = next((source[key] for key in ("finish_reason", "stop_reason") if key in source), "stop")
    if reason not in ENDED:
        marks.add("cut_off")
        return False
    return "unclosed_reasoning" not in marks and "<tool_call>" not in (last["content"] or "")
