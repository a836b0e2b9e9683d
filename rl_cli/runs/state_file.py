"""state.json: what it says, what is true, and the one way to change it.

Only the holder of the run's lock writes it: the supervisor for its whole life, else whoever settles or
stops a run that has none. Every reader judges what it reads: a supervisor that is gone cannot say so itself.
On a full disk what must be written goes into the blocks of .reserve, set aside when the run was made.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.core.files import append_jsonl, read_json, read_jsonl, write_atomic, write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.core.redaction import redacted_json
from rl_cli.runs.times import is_ahead, now_text, seconds_of, since

LIVE = ("starting", "running", "stopping")
"""States in which a supervisor must exist."""
OVER = ("finished", "stopped", "failed")
STATES = ("created", *LIVE, *OVER, "lost")
STALE_SECONDS = 60
"""A supervisor on another host is taken for gone when its last heartbeat is older than this."""
NO_EVALUATION = {"n": None, "untrained": None, "initial": None, "best": None, "final": None}
RESERVE_BYTES = 256 * 1024

WATCHED = "wandb"
"""The backend of a run that somebody else started: it has no process here to judge it by."""

State = dict[str, Any]


def is_over(state: State) -> bool:
    """Nothing will change any more: it ended, or it is lost and no process of it is left."""
    return state["state"] in OVER or (state["state"] == "lost" and bool(state.get("ended")))


def read_state(folder: Path) -> State:
    """state.json as it is written. A file that is missing or damaged reads as a lost run that says so."""
    try:
        state = read_json(folder / "state.json")
        if (wrong := _what_is_wrong(state)) is None:
            checked: State = state
            return checked
        problem = f"state.json is damaged: {wrong}"
    except (OSError, ValueError, RecursionError) as error:
        problem = f"state.json cannot be read: {error}"
    return {"state": "lost", "reason": problem, "ended": now_text(), "damaged": True}


def _what_is_wrong(state: Any) -> str | None:
    """Names the first field that readers could not use."""
    if not isinstance(state, dict) or state.get("state") not in STATES:
        return "it does not hold a run's state"
    for name, is_right in _FIELDS.items():
        if name in state and not is_right(state[name]):
            return f"'{name}' is not what belongs there"
    if seconds_of(state.get("created")) is None:
        return "it does not say when the run was created"
    ours = state.get("backend") != WATCHED
    if (
        ours
        and state["state"] not in (*OVER, "created")
        and not is_over(state)
        and not state.get("supervisor")
    ):
        return f"it is {state['state']}, and no supervisor is named"
    return None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _time(value: Any) -> bool:
    return value is None or (isinstance(value, str) and seconds_of(value) is not None)


def _process(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("host"), str):
        return False
    pid, started = value.get("pid"), value.get("started")
    return isinstance(pid, int) and 0 < pid < 2**31 and _number(started) and 0 <= float(started or 0) < 2**53


def _count(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _evaluation(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and all(v is None or _number(v) for v in value.values())


def _verdict(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, dict) and value.get("state") in OVER and isinstance(value.get("reason"), str)


def _place(value: Any) -> bool:
    if value is None:
        return True
    numbers = isinstance(value, dict) and all(isinstance(value.get(n), int) for n in ("device", "inode"))
    return numbers and isinstance(value.get("path"), str)


def _spending(value: Any) -> bool:
    if value is None:
        return True
    numbers = isinstance(value, dict) and all(
        value.get(n) is None or _number(value[n]) for n in ("gpus", "gpu_hour")
    )
    return numbers and isinstance(value.get("entry"), str) and _text(value.get("session"))


def _list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: (
        value is None or (isinstance(value, list) and all(isinstance(v, kind) for v in value))
    )


_FIELDS: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("reason", "host", "environment", "profile", "backend", "model"), _text),
    **dict.fromkeys(("phase", "wandb_url", "rule"), _text),
    **dict.fromkeys(("created", "resumed", "started", "running_since", "ended", "heartbeat"), _time),
    **dict.fromkeys(("step", "total_steps", "attempt"), _count),
    **dict.fromkeys(("seconds", "seconds_before"), lambda value: value is None or _number(value)),
    **dict.fromkeys(("supervisor", "creator"), lambda value: value is None or _process(value)),
    "ports": lambda value: value is None or isinstance(value, dict),
    "processes": lambda value: isinstance(value, dict) and all(map(_process, value.values())),
    "verdict": _verdict,
    "eval": _evaluation,
    "spending": _spending,
    "place": _place,
    "last_metrics": lambda value: value is None or isinstance(value, dict),
    "alerts": _list_of(dict),
    "last_log_lines": _list_of(str),
}
"""Field of state.json -> whether readers can use what it holds; one that is missing reads as unknown."""


def attempt_seconds(state: State) -> float | None:
    """How long the current attempt has run so far; None before it has started.

    Its supervisor counts on a clock that nobody sets; the wall clock decides only after its last heartbeat.
    """
    counted: float | None = state.get("seconds")
    if counted is None:
        return since(state.get("started"), state.get("ended"))
    if state["state"] in LIVE:
        return counted
    return counted + (since(state.get("heartbeat"), state.get("ended")) or 0.0)


def judge(state: State, exit_record: State | None, asked: str | None = None) -> State:
    """What is true, given what state.json says and what the trainer left as its exit.

    Args:
        state: The content of state.json.
        exit_record: The content of exit/trainer.json, or None.
        asked: Why the run was asked to stop, or None.

    Returns:
        `state` itself if it holds; else a changed copy: `lost`, or how the trainer ended alone.
        A lost run has `ended` only if none of its processes is left.
    """
    if state["state"] in (*OVER, "created") or is_over(state) or state.get("backend") == WATCHED:
        return state
    supervisor = ProcessIdentity.from_dict(state["supervisor"])
    beaten = state.get("heartbeat")
    silent, ahead = since(beaten) or 0.0, is_ahead(beaten)
    alive = supervisor.alive()
    if alive or (alive is None and silent < STALE_SECONDS and not ahead):
        return state
    last = now_text() if ahead or not beaten else beaten
    if exit_record:
        verdict = state.get("verdict") or ({"state": "stopped", "reason": asked} if asked else None)
        return {**state, **ending_of(exit_record, verdict), "ended": exit_record["time"]}
    if alive is None:
        reason = f"no sign of life from the supervisor on {supervisor.host} for {silent:.0f} s"
        if ahead:
            reason = f"the heartbeat of the supervisor on {supervisor.host} lies in the future: {beaten}"
        return {**state, "state": "lost", "reason": reason, "ended": last}
    gone = f"the supervisor (pid {supervisor.pid}) is gone"
    if supervisor.restarted():
        gone = "the machine was restarted while it ran: the supervisor is gone"
    trainer = state.get("processes", {}).get("trainer")
    if trainer and ProcessIdentity.from_dict(trainer).alive():
        reason = f"{gone}; the trainer (pid {trainer['pid']}) still runs"
        return {**state, "state": "lost", "reason": reason, "ended": None}
    if verdict := state.get("verdict"):  # it was being ended, and did end
        return {**state, **verdict, "ended": last}
    left = ", and so is the trainer, which left no exit file" if trainer else " and started no trainer"
    return {**state, "state": "lost", "reason": gone + left, "ended": last}


def ending_of(exit_record: State, verdict: State | None) -> State:
    """{"state", "reason"} for a trainer that said how it ended, given why it had been told to (or None).

    A trainer that failed, or that finished before it noticed the request, is believed; a health rule that
    found a failure is believed over a trainer that then stopped in good order.
    """
    outcome, reason = exit_record["outcome"], exit_record["reason"]
    if verdict and (outcome == "stopped" or verdict["state"] == "failed"):
        return dict(verdict)
    return {"state": outcome if outcome in OVER else "failed", "reason": reason}


def recorded_end(folder: Path) -> State | None:
    """{"state", "reason", "ended"} if the newest `state` event is an end: it may be all that was written."""
    path = folder / "events.jsonl"
    try:
        start = max(0, path.stat().st_size - 64 * 1024)
        events = [event for event in read_jsonl(path, start) if event.get("kind") == "state"]
    except OSError:
        return None
    last = events[-1] if events else {}
    texts = isinstance(last.get("reason"), str) and _time(last.get("time")) and last.get("time")
    if last.get("state") not in OVER or not texts:
        return None
    return {"state": last["state"], "reason": last["reason"], "ended": last["time"]}


def set_reserve_aside(folder: Path, size: int = RESERVE_BYTES) -> None:
    """Sets bytes aside, so that a stop and the end of the run can be written even when the disk is full.

    Raises:
        OSError: It is full already.
    """
    write_atomic(folder / ".reserve", os.urandom(size))  # zeros may be stored as nothing


def write_into_reserve(folder: Path, name: str, value: State) -> None:
    """Makes .reserve the file `name`, in the blocks that it has. What is left is set aside again.

    Raises:
        OSError: There is no reserve, it is a link, or it cannot be written.
    """
    payload = (redacted_json(value, indent=2) + "\n").encode()
    reserve = folder / ".reserve"
    with os.fdopen(os.open(reserve, os.O_RDWR | os.O_NOFOLLOW), "r+b") as file:
        try:
            file.write(payload)
            file.flush()
            file.truncate()
            os.fsync(file.fileno())
        except OSError:  # a file system that never overwrites: what the reserve held has to do
            reserve.unlink()
            in_place = False
        else:
            in_place = True
    if in_place:
        reserve.replace(folder / name)
    else:
        write_atomic(folder / name, payload)
    with suppress(OSError):
        set_reserve_aside(folder, RESERVE_BYTES // 2)


class StateWriter:
    """Changes state.json. Exists only while its maker holds the run's lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = read_state(folder)

    def update(self, **changes: Any) -> None:
        self.state = {**self.state, **changes}
        write_json(self.folder / "state.json", self.state)

    def move(self, state: str, reason: str | None, **changes: Any) -> None:
        """Enters another state, with the event that says so.

        On a full disk an end is written into the reserve; `running` and `stopping` wait for a heartbeat.
        """
        event = {"time": now_text(), "kind": "state", "state": state, "reason": reason}
        told = self._tell(event)  # first: who sees the end finds it told
        try:
            self.update(state=state, reason=reason, **changes)
        except OSError:
            if state in (*OVER, "lost"):
                write_into_reserve(self.folder, "state.json", self.state)
            elif state not in ("running", "stopping"):
                raise
        if is_over(self.state):
            with suppress(OSError):
                (self.folder / ".reserve").unlink(missing_ok=True)
        if not told:
            self._tell(event)

    def _tell(self, event: State) -> bool:
        """Whether the event is in events.jsonl, which a full disk may forbid: state.json is what counts."""
        known = recorded_end(self.folder)
        if known and (known["state"], known["reason"]) == (event["state"], event["reason"]):
            return True
        try:
            append_jsonl(self.folder / "events.jsonl", event)
        except OSError:
            return False
        return True

    def beat(self, **changes: Any) -> None:
        """A heartbeat. A disk that is full for a moment must not end the run: the next one tries again."""
        with suppress(OSError):
            self.update(heartbeat=now_text(), **changes)
