"""monitor.json in the home folder: that a monitor is there, and which runs it watches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.checks.clock import Moment, SystemClock, seconds_between
from rl_cli.runs.times import MOST_AHEAD_SECONDS, is_ahead, now_text, since

FILE, LOCK = "monitor.json", ".monitor.lock"
LATE_SECONDS = 60.0
"""A monitor whose last heartbeat is older hangs: another one takes its place."""
OVERDUE_SECONDS = 120.0
"""A due time that nobody has taken for so long is overdue."""


@dataclass(frozen=True)
class MonitorState:
    """What is known of the monitor of a home."""

    state: str
    """running, hangs, ended (it said so), or gone (it did not)."""
    pid: int
    heartbeat_seconds: float
    """Since its last heartbeat."""
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    process: ProcessIdentity | None = None

    @property
    def is_other(self) -> bool:
        """Whether another process does the checks now."""
        return self.state == "running" and self.process != ProcessIdentity.current()

    @property
    def overdue(self) -> list[str]:
        """Runs whose due time has passed for too long."""
        late = {run_id: since(run.get("next_due")) for run_id, run in self.runs.items()}
        return [
            run_id for run_id, seconds in late.items() if seconds is not None and seconds > OVERDUE_SECONDS
        ]


def write_heartbeat(home: Path, started: str, **fields: Any) -> None:
    """Says that the monitor of this process is there.

    Args:
        home: RL_CLI_HOME.
        started: When it began.
        fields: `runs`: run id -> state, next_due, missed, ...; `ended` when it ends.
    """
    process, clock = ProcessIdentity.current().to_dict(), SystemClock().now().to_dict()
    record = {"process": process, "started": started, "heartbeat": now_text(), "clock": clock}
    write_json(home / FILE, {**record, **fields})


def monitor_state(home: Path) -> MonitorState | None:
    """None where there never was one, or where it says that it will be there in days to come."""
    try:
        record = read_json(home / FILE)
        process = ProcessIdentity.from_dict(record["process"])
        beaten = Moment.from_dict(record.get("clock"))
        age = _age(beaten, record["heartbeat"])
        runs = record.get("runs") or {}
        runs = {str(k): v for k, v in runs.items() if isinstance(v, dict)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if age is None:
        return None
    alive = process.alive()
    if record.get("ended"):
        state = "ended"
    elif alive is False or (alive is None and age > LATE_SECONDS):
        state = "gone"
    else:
        state = "hangs" if age > LATE_SECONDS else "running"
    return MonitorState(state, process.pid, max(0.0, age), runs, process)


def _age(beaten: Moment | None, text: str) -> float | None:
    """Seconds since a heartbeat; None for one of which nobody can have been the author."""
    now = SystemClock().now()
    ahead = seconds_between(now, beaten) if beaten else 0.0
    if ahead > MOST_AHEAD_SECONDS or (beaten is None and is_ahead(text)):
        return None
    return seconds_between(beaten, now) if beaten else since(text)


def take_place(home: Path) -> tuple[bool, MonitorState | None]:
    """Makes this process the one that does the checks of a home, unless another one does.

    A monitor that hangs loses its place though it lives: it sees so at its next heartbeat.

    Returns:
        Whether it does the checks now, and what is known of the monitor before; None if there was none.
    """
    with only_monitor(home) as mine:
        found = monitor_state(home)
        if mine:
            write_heartbeat(home, now_text())
        return mine, found


@contextmanager
def only_monitor(home: Path) -> Iterator[bool]:
    """Whether no other process does the checks of a home; none begins to as long as the context lasts."""
    import filelock

    lock = filelock.FileLock(home / LOCK, timeout=1)
    try:
        lock.acquire()
    except filelock.Timeout:
        yield False
        return
    try:
        found = monitor_state(home)
        yield not (found and found.is_other)
    finally:
        lock.release()
