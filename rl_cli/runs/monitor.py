"""Waiting for the moment at which a run wants judgement: a due time, an alert, the end, or a person.

The supervisor makes the deterministic checks; this is for the one who thinks about the run. Any number of
processes may wait for the same run: each due time and each alert goes to one of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from rl_cli.runs.due_checks import DueChecks
from rl_cli.runs.follow import Follower
from rl_cli.runs.progress import Progress, progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State, is_over

LOOK_EVERY_SECONDS = 0.25

OnProgress = Callable[[dict[str, Any]], None]


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
    run: RunDir, interrupted: asyncio.Event | None = None, on_progress: OnProgress | None = None
) -> CheckOutcome:
    """Waits until the run is to be judged.

    Args:
        run: The run.
        interrupted: Set by whoever wants the wait to end: the person at the keyboard.
        on_progress: Called with every event of the run (see `Follower`), in order, from this event loop.

    Returns:
        Why the wait ended; at once, with "end", for a run that is over.
    """
    from apscheduler.schedulers.asyncio import AsyncIOScheduler

    follower = _followers.setdefault(str(run.path), Follower(run))
    checks = DueChecks(run)
    scheduler = AsyncIOScheduler(timezone=UTC)
    scheduler.start()
    wake = asyncio.Event()
    try:
        while True:
            for event in follower.news():
                if on_progress:
                    on_progress(event)
            if why := _reason(follower, checks, interrupted):
                return why
            _schedule(scheduler, checks, wake)
            await _sleep(wake, interrupted)
    finally:
        scheduler.shutdown(wait=False)


def progress(run: RunDir) -> dict[str, Any]:
    """How far a run is, in figures (see `Progress.report`)."""
    return progress_of(run).report()


def next_check_seconds(run: RunDir) -> float | None:
    """Seconds until the next judgement is due, 0 if it is overdue; None while there is none to come."""
    due = None if is_over(run.state()) else DueChecks(run).next_due()
    return None if due is None else round(max(0.0, due - time.time()), 1)


def _reason(follower: Follower, checks: DueChecks, interrupted: asyncio.Event | None) -> CheckOutcome | None:
    state, progress = follower.state, follower.progress
    if follower.over:
        checks.take_alerts(progress.alerts)
        return CheckOutcome("end", state, progress)
    if interrupted is not None and interrupted.is_set():
        return CheckOutcome("interrupted", state, progress, [], next_check_seconds(follower.run))
    if new := checks.take_alerts(progress.alerts):
        return CheckOutcome("alert", state, progress, new, next_check_seconds(follower.run))
    due = checks.next_due()
    if due is not None and time.time() >= due and checks.take_check():
        return CheckOutcome("due", state, progress, [], next_check_seconds(follower.run))
    return None


def _schedule(scheduler: Any, checks: DueChecks, wake: asyncio.Event) -> None:
    """One job for the next due time; it moves when somebody else has taken that."""
    due = checks.next_due()
    job = scheduler.get_job("check")
    if due is None or (job and abs(job.trigger.run_date.timestamp() - due) < 0.001):
        return
    moment = datetime.fromtimestamp(due, UTC)
    scheduler.add_job(
        wake.set, "date", run_date=moment, id="check", replace_existing=True, misfire_grace_time=None
    )


async def _sleep(wake: asyncio.Event, interrupted: asyncio.Event | None) -> None:
    """Until the due time or the person wakes us, or it is time to look at the files again."""
    waits = [asyncio.ensure_future(wake.wait())]
    if interrupted is not None:
        waits.append(asyncio.ensure_future(interrupted.wait()))
    try:
        await asyncio.wait(waits, timeout=LOOK_EVERY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()
    wake.clear()
