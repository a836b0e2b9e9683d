"""Waiting for the moment at which a run wants judgement: a due time, an alert, the end, or a person.

The supervisor makes the deterministic checks; this is for the one who thinks about the run. Any number of
processes may wait for the same run: each due time and each alert goes to one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from rl_cli.core.files import read_jsonl
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.follow import Follower
from rl_cli.runs.progress import Progress, progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State, is_over
from rl_cli.runs.tracking_file import tracking_facts

LOOK_EVERY_SECONDS = 0.25
BURST_SECONDS = 0.25
"""Alerts that come so soon after a first one are judged with it."""
CATCH_UP_SECONDS = 60.0
"""What happened before that is no news to whoever begins to wait."""
RECENT = 5
"""Rows of metrics in a status."""
TAIL_BYTES = 16_384

OnProgress = Callable[[dict[str, Any]], None]
Why = Literal["due", "alert", "end"]


@dataclass(frozen=True)
class CheckOutcome:
    why: Literal["due", "alert", "end", "interrupted"]
    state: State
    progress: Progress
    """What its rows and events add up to."""
    alerts: list[dict[str, Any]] = field(default_factory=list)
    """The new ones, if that is why."""
    next_check_seconds: float | None = None
    """Until the next due time; None when the run is over, or before it is running."""


_followers: dict[str, Follower] = {}
"""Where each run's reader in this process stands, so that the next wait shows what came in between."""


async def wait_for_check(
    run: RunDir,
    interrupted: asyncio.Event | None = None,
    on_progress: OnProgress | None = None,
    hold: bool = False,
    look_every: float = LOOK_EVERY_SECONDS,
    on_look: Callable[[], None] | None = None,
) -> CheckOutcome:
    """Waits until the run is to be judged. An alert and a due time that come together are one judgement.

    Args:
        run: The run.
        interrupted: Set by whoever wants the wait to end: the person at the keyboard.
        on_progress: Called with every event of the run (see `Follower`), in order, from this event loop.
        hold: See `DueChecks.take_check`.
        look_every: Seconds between two looks at its files.
        on_look: Called at each.

    Returns:
        Why the wait ended; at once, with "end", for a run that is over.
    """
    follower = _followers.setdefault(str(run.path), Follower(run, catch_up_seconds=CATCH_UP_SECONDS))
    checks = await asyncio.to_thread(DueChecks, run)
    interrupted = interrupted or asyncio.Event()
    while True:
        await _look(follower, on_progress)
        if on_look:
            on_look()
        if not follower.over and await asyncio.to_thread(checks.has_new, follower.progress.alerts):
            await _sleep(interrupted, BURST_SECONDS)
            await _look(follower, on_progress)
        if outcome := await asyncio.to_thread(_taken, follower, checks, interrupted, hold):
            if follower.over:
                _followers.pop(str(run.path), None)
            return outcome
        await _sleep(interrupted, look_every)


def check_now(run: RunDir) -> CheckOutcome | None:
    """What there is to judge at this moment, taken and held; None if there is nothing."""
    follower = Follower(run)
    follower.news()
    return _taken(follower, DueChecks(run), asyncio.Event(), hold=True)


def progress(run: RunDir) -> dict[str, Any]:
    """How far a run is, in figures (see `Progress.report`)."""
    return progress_of(run).report()


def next_check_seconds(run: RunDir) -> float | None:
    """Seconds until the next judgement is due, 0 if it is overdue; None while there is none to come."""
    left = None if is_over(run.state()) else DueChecks(run).seconds_left()
    return None if left is None else round(left, 1)


def status_of(run: RunDir, outcome: CheckOutcome | None = None) -> dict[str, Any]:
    """What there is to judge a run by: its summary, progress, newest rows and alerts.

    Args:
        run: The run.
        outcome: Of a wait that has just ended; None reads everything anew.
    """
    summary = run.summary()
    known = outcome.progress if outcome else progress_of(run)
    missed = DueChecks(run).missed()
    return {
        "run": summary,
        "progress": known.report(),
        "recent": _recent_rows(run),
        "alerts": known.current_alerts,
        "next_check_seconds": outcome.next_check_seconds if outcome else next_check_seconds(run),
        **({"wandb": tracked} if (tracked := tracking_facts(run)) else {}),
        **({"missed_checks": missed} if missed else {}),
    }


async def _look(follower: Follower, on_progress: OnProgress | None) -> None:
    for event in await asyncio.to_thread(follower.news):
        if on_progress:
            on_progress(event)


def _taken(
    follower: Follower, checks: DueChecks, interrupted: asyncio.Event, hold: bool
) -> CheckOutcome | None:
    """What there is to judge now, taken so that nobody else judges it."""
    state, known, run = follower.state, follower.progress, follower.run
    if follower.over:
        checks.take_alerts(known.alerts)
        return CheckOutcome("end", state, known)
    if interrupted.is_set():
        return CheckOutcome("interrupted", state, known, [], next_check_seconds(run))
    new = checks.take_alerts(known.alerts, hold)
    is_due = checks.seconds_left() == 0 and checks.take_check(hold)
    if not new and not is_due:
        return None
    return CheckOutcome("alert" if new else "due", state, known, new, next_check_seconds(run))


def _recent_rows(run: RunDir) -> list[dict[str, Any]]:
    """The newest rows of metrics.jsonl, read from its end."""
    path = run.path / "metrics.jsonl"
    size = path.stat().st_size if path.exists() else 0
    return list(read_jsonl(path, max(0, size - TAIL_BYTES)))[-RECENT:]


async def _sleep(interrupted: asyncio.Event, seconds: float) -> None:
    """Shorter if the person wants attention."""
    try:
        async with asyncio.timeout(seconds):
            await interrupted.wait()
    except TimeoutError:
        pass
