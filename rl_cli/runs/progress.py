"""How far a run is: kept up to date from the rows that its files gain."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import pairwise
from statistics import fmean, median
from typing import Any

from rl_cli.core.files import tail_jsonl
from rl_cli.runs.curves import Curve, Curves, as_figure, as_step
from rl_cli.runs.metric_names import has_our_name
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import NO_EVALUATION
from rl_cli.runs.times import duration, seconds_of

Row = dict[str, Any]
PACE_ROWS = 11
CHUNK_BYTES = 1 << 17
OF_TRAINER = ("phase", "evaluation", "checkpoint", "warm_start", "warning")
"""Kinds of events that the trainer writes; the others say nothing about its progress."""
QUIET_FACTOR = 3.0
"""Usual step times without a row after which a run is quiet."""
QUIET_LEAST = 5.0
"""Seconds; less is not worth a word."""


def number(row: Row, name: str) -> float | None:
    """A figure of a metrics row; NaN and infinities, which the file holds as text, are floats again."""
    return as_figure(row.get(name))


def finite(rows: Iterable[Row], name: str) -> list[float]:
    """The finite values of one figure, in order."""
    values = (number(row, name) for row in rows)
    return [v for v in values if v is not None and math.isfinite(v)]


def is_earlier(alert: Row) -> bool:
    """Whether an alert is of an attempt before the one that goes on."""
    return "attempt" in alert


class Progress:
    """What the metrics and events of a run add up to.

    Args:
        total_steps: GRPO steps that are planned.
        judged_only: Keep no curves but those that the health rules and our own figures are about.
    """

    def __init__(self, total_steps: int | None = None, judged_only: bool = False) -> None:
        self.total_steps = total_steps
        kept = has_our_name if judged_only else None
        self.grpo, self.sft = Curves(kept), Curves(kept)
        self.rows = 0
        """Rows that were fed."""
        self.last_row: Row = {}
        self.phase: str | None = None
        self.eval: dict[str, Any] = dict(NO_EVALUATION)
        self.validations = Curve()
        """Accuracy on the validation split."""
        self.checkpoint: int | None = None
        """Step of the newest checkpoint."""
        self.attempt = 1
        self.alerts: list[Row] = []
        """Of all attempts: those of earlier ones say which, as `attempt`."""
        self.heard: str | None = None
        """Time of the newest row or event of the trainer, or of the resume that came after it."""
        self.wandb_url: str | None = None
        self._recent: deque[Row] = deque(maxlen=PACE_ROWS)

    @property
    def step(self) -> int:
        """The newest GRPO step that has figures; 0 before the first."""
        return self.grpo.steps.steps[-1] if len(self.grpo) else 0

    def feed(self, rows: list[Row], events: list[Row]) -> None:
        """Takes what is new in metrics.jsonl and events.jsonl."""
        for event in events:
            kind = event.get("kind")
            if kind in OF_TRAINER or kind == "resumed":
                self.heard = event.get("time") or self.heard
            if kind == "phase":
                self.phase = str(event.get("name"))
            elif kind == "evaluation":
                self._evaluation(event)
            elif kind == "alert":
                self.alerts.append({k: v for k, v in event.items() if k != "kind"})
            elif kind == "checkpoint" and (step := as_step(event.get("step"))) is not None:
                self.checkpoint = step
            elif kind == "resumed":
                self._resumed(event)
            elif kind == "wandb" and event.get("url"):
                self.wandb_url = str(event["url"])
        for row in rows:
            self._row(row)

    def _row(self, row: Row) -> None:
        self.rows, self.last_row = self.rows + 1, row
        self.heard = row.get("time") or self.heard
        step = as_step(row.get("step"))
        if step is None:
            return
        if row.get("phase") == "sft":
            self.sft.add(step, row)
        elif row.get("phase") == "grpo":
            if step <= self.step:
                self._recent.clear()
            self.grpo.add(step, row)
            self._recent.append(row)
            accuracy = number(row, "accuracy/validation")
            if accuracy is not None:
                self.validations.put(step, accuracy)

    def reached(self) -> dict[str, Any]:
        """`phase` and `step` of the newest row that counts, where there is one."""
        if self.step:
            return {"phase": "grpo", "step": self.step}
        return {"phase": "sft", "step": self.sft.steps.steps[-1]} if len(self.sft) else {}

    @property
    def current_alerts(self) -> list[Row]:
        """Those of the attempt that goes on, or was the last."""
        return [alert for alert in self.alerts if not is_earlier(alert)]

    def _resumed(self, event: Row) -> None:
        """The run goes on from a checkpoint: what came after that is to be done again."""
        step, attempt = as_step(event.get("step")), event.get("attempt")
        self.phase = "grpo" if step else None
        if isinstance(attempt, int):
            self.alerts = [{"attempt": self.attempt, **alert} for alert in self.alerts]
            self.attempt = attempt
        if step is not None:
            self.grpo.cut(step + 1)
            self.validations.cut(step + 1)
            self.eval = {**self.eval, "best": None, "final": None}

    def _evaluation(self, event: Row) -> None:
        which, accuracy = event.get("which"), number(event, "accuracy")
        if accuracy is None or not math.isfinite(accuracy):
            return
        if which == "validation":
            self.validations.put(as_step(event.get("step")) or 0, accuracy)
        elif which in self.eval and which != "n":
            n = event.get("n")
            self.eval = {**self.eval, which: accuracy, "n": n if isinstance(n, int) and n else self.eval["n"]}

    def figures(self) -> dict[str, Any]:
        """The part of state.json that this is about."""
        return {
            "phase": self.phase,
            "step": self.step,
            "total_steps": self.total_steps,
            "eval": self.eval,
            "last_metrics": self.last_row,
            "alerts": self.alerts,
            "wandb_url": self.wandb_url,
        }

    def report(self) -> dict[str, Any]:
        """Progress in figures, as `rl_check_status` shows it; None where nothing is known yet."""
        rewards = self.grpo["reward/mean"]
        best, signal = rewards.best(), self.grpo["groups/with_signal"].last(5)
        return {
            "phase": self.phase,
            "step": self.step,
            "total_steps": self.total_steps,
            "eta_seconds": self.eta_seconds(),
            "reward_first": rewards.values[0] if len(rewards) else None,
            "reward_last": rewards.values[-1] if len(rewards) else None,
            "reward_best": best[1] if best else None,
            "signal_share": sum(signal) / len(signal) if signal else None,
            "steps_since_best": self.step - best[0] if best else None,
        }

    def eta_seconds(self) -> float | None:
        """Seconds until the last GRPO step at the pace of the last ten; evaluations are not counted."""
        pace = self.pace()
        if not self.total_steps or pace is None:
            return None
        return round(max(0, self.total_steps - self.step) * pace, 1)

    def quiet(self, now: float, stall_seconds: float) -> str | None:
        """A sentence about a trainer that writes nothing for unusually long; None while all is as usual.

        Args:
            now: Unix time.
            stall_seconds: Of silence after which the run is called stalled.
        """
        heard = seconds_of(str(self.heard))
        if heard is None:
            return None
        pace = self.pace() if self.phase in (None, "grpo") else None
        usual = stall_seconds / 2 if pace is None else QUIET_FACTOR * pace
        silence = now - heard
        if silence <= max(QUIET_LEAST, min(usual, stall_seconds / 2)):
            return None
        what = "no new step" if self.phase in (None, "grpo", "sft") else "nothing new"
        return f"{what} for {duration(silence)}; called stalled at {duration(stall_seconds)}"

    def pace(self) -> float | None:
        """Seconds that one of the last ten GRPO steps took; None before there are two."""
        rows = list(self._recent)
        if len(rows) < 2:
            return None
        if paces := finite(rows[1:], "seconds/step"):
            return fmean(paces)
        times = [seconds for row in rows if (seconds := seconds_of(row.get("time"))) is not None]
        apart = [later - earlier for earlier, later in pairwise(times)]
        return max(0.0, median(apart)) if apart else None  # one is off where the clock was set


class Reader:
    """Reads only what the metrics and events of a run have gained since the last time.

    A file that was replaced (a resumed run's metrics) is read anew: `Progress` forgets what comes again.
    """

    def __init__(self, run: RunDir) -> None:
        self._paths = (run.path / "metrics.jsonl", run.path / "events.jsonl")
        self._offsets = [0, 0]
        self._files = [(0, -1), (0, -1)]
        """(inode, size) as they were."""
        self.rows_left = 0
        """Rows of metrics that are there after those that were given last: by the size of those, about."""

    def batches(self) -> Iterator[tuple[list[Row], list[Row]]]:
        """Yields (new metrics rows, new events) of bounded size; costs two `stat` calls if there are none.

        A row comes after all events that were written before it.
        """
        there = self._stat(0)
        while events := self._gained(1, self._stat(1)):
            yield [], events
        while rows := self._gained(0, there):
            yield rows, []

    def read(self) -> tuple[list[Row], list[Row]]:
        """All of it at once."""
        rows: list[Row] = []
        events: list[Row] = []
        for some_rows, some_events in self.batches():
            rows += some_rows
            events += some_events
        return rows, events

    def _stat(self, i: int) -> os.stat_result | None:
        try:
            return self._paths[i].stat()
        except FileNotFoundError:
            return None

    def _gained(self, i: int, there: os.stat_result | None) -> list[Row]:
        """The next rows of a file, up to where it ended; none if it was replaced since."""
        now = self._stat(i)
        if there is None or now is None or now.st_ino != there.st_ino:
            return []
        if self._files[i] == (there.st_ino, there.st_size):
            return []
        if there.st_ino != self._files[i][0] or there.st_size < self._offsets[i]:
            self._offsets[i] = 0
        rows = list[Row]()
        while not rows and (left := there.st_size - self._offsets[i]) > 0:
            before = self._offsets[i]
            rows, self._offsets[i] = tail_jsonl(self._paths[i], before, min(CHUNK_BYTES, left))
            if self._offsets[i] == before:  # a line that is still being written
                break
        left = there.st_size - self._offsets[i] if rows else 0
        if i == 0:
            self.rows_left = round(left * len(rows) / (self._offsets[i] - before)) if left > 0 else 0
        self._files[i] = (there.st_ino, -1 if left > 0 else there.st_size)
        return rows


def progress_of(run: RunDir) -> Progress:
    """The whole progress of a run, read from its files."""
    progress = Progress(run.state().get("total_steps"))
    for rows, events in Reader(run).batches():
        progress.feed(rows, events)
    return progress
