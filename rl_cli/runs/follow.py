"""What happens in a run, as it happens, for whoever shows it live."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cached_property
from typing import Any

from rl_cli.core.errors import RlCliError, WorkFailed
from rl_cli.runs.progress import Progress, Reader, Row
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import State, is_over
from rl_cli.runs.times import seconds_of

SHOWN = (
    *("phase", "evaluation", "alert", "warm_start", "checkpoint", "decision", "stop_requested", "wandb"),
    *("checks_missed", "resumed"),
)
Feed = Callable[[Progress, list[Row], list[Row], int], None]


class Follower:
    """Turns what a run's files gain into events.

    The first call to `news` catches up: the events of the present attempt so far and the newest row of
    metrics, not every row; of a run that is over, only how it ended.
    An event is a row of events.jsonl ("kind": phase, evaluation, alert, warm_start, ...), or
    {"kind": "metrics", "row", "total_steps"}, or {"kind": "state", "state", "reason"} for each new state,
    with the time of an end.

    Args:
        run: The run.
        judged_only: As `Progress` has it.
        catch_up_seconds: Of the events so far, those that are not older, and the present phase; None: all.
        feed: Puts new rows and events into the Progress, knowing how many rows are left.
    """

    def __init__(
        self,
        run: RunDir,
        judged_only: bool = False,
        catch_up_seconds: float | None = None,
        feed: Feed | None = None,
    ) -> None:
        self.run = run
        self._feed = feed
        self.progress = Progress(judged_only=judged_only)
        self._reader = Reader(run)
        self._catch_up_seconds = catch_up_seconds
        self._state: tuple[str, str | None] | None = None
        self.state: State = run.state()

    @property
    def over(self) -> bool:
        return is_over(self.state)

    def news(self) -> list[dict[str, Any]]:
        """What is new since the last call; costs three `stat` calls and one small file if nothing is."""
        first = self._state is None
        self.state = settle(self.run)
        self.progress.total_steps = self.state.get("total_steps")
        rows: list[Row] = []
        events: list[Row] = []
        for some_rows, some_events in self._reader.batches():
            if self._feed:
                self._feed(self.progress, some_rows, some_events, self._reader.rows_left)
            else:
                self.progress.feed(some_rows, some_events)
            rows = (rows + some_rows)[-1 if first else 0 :]
            events += some_events
        found: list[dict[str, Any]] = []
        now = (self.state["state"], self.state.get("reason"))
        event = {"kind": "state", "state": now[0], "reason": now[1]}
        if self.over and self.state.get("ended"):
            event["time"] = self.state["ended"]
        change = [event] if now != self._state else []
        self._state = now
        if first:
            found += change
            events = _of_now(events, self._catch_up_seconds)
        if not (first and self.over):
            found += [event for event in events if event.get("kind") in SHOWN]
            for row in rows:
                found.append({"kind": "metrics", "row": row, "total_steps": self._total_steps(row)})
        return found if first else [*found, *change]

    def _total_steps(self, row: Row) -> int | None:
        """Planned steps of the phase that the row is of."""
        return self.sft_steps if row.get("phase") == "sft" else self.progress.total_steps

    @cached_property
    def sft_steps(self) -> int | None:
        """Most steps that the warm start may take; None where nobody knows."""
        try:
            steps = self.run.config_dict()["sft"]["max_steps"]
        except (RlCliError, OSError, LookupError, TypeError, ValueError):
            return None
        return steps if isinstance(steps, int) and steps > 0 else None


def _of_now(events: list[Row], seconds: float | None) -> list[Row]:
    """The events of the present attempt; where `seconds` are given, no older ones but the present phase."""
    begun = max((i for i, event in enumerate(events) if event.get("kind") == "resumed"), default=0)
    events = events[begun:]
    if seconds is None:
        return events
    phases = [event for event in events if event.get("kind") == "phase"]
    since = time.time() - seconds
    return [e for e in events if e in phases[-1:] or (seconds_of(str(e.get("time"))) or since) >= since]


def must_exist(run: RunDir) -> None:
    """Raises WorkFailed if the directory was deleted while we looked at it."""
    if not run.path.is_dir():
        raise WorkFailed(f"{run.id} is gone: {run.path} was deleted")
