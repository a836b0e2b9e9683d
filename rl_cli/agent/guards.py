"""When to end a turn that leads nowhere. Pure functions over what happened in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from environments.agent_loop import CallRecord, Stop, StopReason
from environments.policies.base import Completion
from rl_cli.core.cuts import one_line
from rl_cli.core.messages import Message

SAME_FAILURES = 3
"""The same call, failed this often in a row."""
UNKNOWN_TOOLS = 8
"""Calls of tools that do not exist, in a row."""
FAILURES = 12
"""Calls that failed in a row, whatever was called."""
ROUNDS = 4
"""So often in a row the same calls, one to LONGEST_ROUND of them, brought the same results."""
LONGEST_ROUND = 4
TRIES = 3
"""Requests that may be answered by nothing, or by a call that was cut off, in one turn."""

REASONS = {
    StopReason.MAX_TURNS: "it took too many requests; say 'go on' to let it go on",
    StopReason.DEADLINE: "the time that was allowed is over",
    StopReason.TOKEN_LIMIT: "the answer was cut off at the model's output limit; say 'go on' for the rest",
    StopReason.INTERRUPTED: "interrupted",
}
"""What a person reads where a stop brings no words of its own."""


def in_a_circle(records: Sequence[CallRecord]) -> Stop | None:
    """A Stop where the calls of this turn, oldest first, end in one that is repeated without effect."""
    if not records:
        return None
    records = _once_a_turn(records)
    last = records[-1]
    same_call = _run_of(records, lambda r: _call(r) == _call(last))
    failures = _run_of(same_call, lambda r: not r.ok)
    if len(failures) >= SAME_FAILURES:
        why = f"{last.name} failed {len(failures)} times in a row with the same arguments: {_message(last)}"
        return _stuck(why)
    if nothing_works := _only_failures(records):
        return _stuck(nothing_works)
    seen = [_effect(record) for record in records if not _waits(record)]
    for length in range(1, LONGEST_ROUND + 1):
        end = seen[-ROUNDS * length :]
        if len(end) == ROUNDS * length and len(set(end)) <= length and not _waits(last):
            names = " and ".join(sorted({name for name, _, _ in end}))
            calls = "the same results" if length == 1 else f"only {len(set(end))} different results"
            return _stuck(f"the last {len(end)} calls, of {names}, brought {calls}")
    return None


def _only_failures(records: Sequence[CallRecord]) -> str | None:
    """Where nothing that was tried in the last few replies has worked, in one line."""
    failures = _run_of(records, lambda r: not r.ok)
    unknown = _run_of(failures, lambda r: r.error_type == "unknown_tool")
    for run, most, what in (
        (unknown, UNKNOWN_TOOLS, "were of tools that do not exist"),
        (failures, FAILURES, "failed"),
    ):
        replies = sum(1 for _ in groupby(run, key=lambda record: record.turn))
        if len(run) >= most and replies >= SAME_FAILURES:  # it was told so, and went on
            last = f"{one_line(run[-1].name, 100)}: {_message(run[-1])}"
            return f"the last {len(run)} calls {what}; the last one, {last}"
    return None


def _stuck(why: str) -> Stop:
    advice = "say what to do differently, or 'go on' to let it try again"
    return Stop(StopReason.STUCK, f"the turn was ended, since it led nowhere: {why}; {advice}")


def still_refused(records: Sequence[CallRecord]) -> bool:
    """Whether a tool of this turn was last refused, and not allowed after that, perhaps with a change."""
    last = {record.name: record.error_type == "refused" for record in records}
    return any(last.values())


def is_empty(message: Message) -> bool:
    """Neither words nor a call. Thinking alone is no answer."""
    return not (message["content"] or "").strip() and not message.get("tool_calls")


def was_cut(completion: Completion, stop: StopReason) -> bool:
    """The last reply of a loop ended in the middle of a call, or before it said anything."""
    unusable = bool(completion.call_errors)
    if stop is StopReason.TOKEN_LIMIT:
        return unusable or bool(completion.message.get("tool_calls")) or is_empty(completion.message)
    return stop is StopReason.FINISHED and unusable


def _once_a_turn(records: Sequence[CallRecord]) -> list[CallRecord]:
    """The records, without those that repeat a call of the same reply."""
    kept: list[CallRecord] = []
    for _, reply in groupby(records, key=lambda record: record.turn):
        first: dict[tuple[str, str], CallRecord] = {}
        for record in reply:
            first.setdefault(_call(record), record)
        kept += first.values()
    return kept


def _run_of(records: Sequence[CallRecord], holds: Callable[[CallRecord], bool]) -> list[CallRecord]:
    """The records at the end for which `holds`, without a gap."""
    run = []
    for record in reversed(records):
        if not holds(record):
            break
        run.append(record)
    return run[::-1]


def _call(record: CallRecord) -> tuple[str, str]:
    try:
        arguments = json.dumps(json.loads(record.arguments or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        arguments = record.arguments
    return record.name, arguments


def _effect(record: CallRecord) -> tuple[str, str, str]:
    """Equal for calls that bring the same. All waits for a run that has ended do, however they are worded."""
    result = _object(record.result)
    if result.get("why") == "end":
        run = result.get("run")
        return record.name, "a run that has ended", str(run.get("id") if isinstance(run, dict) else run)
    return (*_call(record), record.result)


def _waits(record: CallRecord) -> bool:
    """A wait may well end with nothing new; it costs nothing, and the supervisor watches the run."""
    waited = _object(record.arguments).get("wait") is True
    return waited and _object(record.result).get("why") not in (None, "end")


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _message(record: CallRecord) -> str:
    error = _object(record.result).get("error", {})
    return one_line(str(error.get("message", error) if isinstance(error, dict) else error), 200)
