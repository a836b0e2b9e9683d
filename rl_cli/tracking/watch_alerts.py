"""The health rules on a watched run: whatever they find is an alert, and nothing is stopped.

Each row is judged, as for a run of this machine. Of the rows before the newest ROW_BY_ROW that come at a time
only some hundred are, but the rules that would end a run of ours see every one of them, too.
"""

from __future__ import annotations

import time
from dataclasses import replace

from rl_cli.runs.health import (
    AlertGate,
    Finding,
    Limits,
    alert_fields,
    inspect,
    inspect_stops,
    stop_signs,
    view_of,
)
from rl_cli.runs.progress import Progress, Row
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.watched import wandb_step

ROW_BY_ROW = 300
"""Newest rows of what has come that are judged one by one: 0.1 s."""
SHARE = 40
"""Between two of the older ones lies this part of the rows that follow: 90 checks for a factor of ten."""


class WatchAlerts:
    """Raises what is new.

    Args:
        run: The watched run.
    """

    def __init__(self, run: RunDir) -> None:
        self.run = run
        section = run.config().health
        self._limits = Limits(
            stall_seconds=section.stall_seconds,
            no_signal_batches=section.no_signal_batches,
            target_accuracy=section.target_accuracy,
            plateau_patience=section.plateau_patience,
            alerts=section.alerts,
        )
        self._gate = AlertGate(section.alerts.cooldown_steps)
        self._first = True
        self.judged: int | None = None
        """`_step` at W&B of the newest row that was judged, or -1; None while another process judges."""
        self._checked = 0
        """Row of the last whole check."""
        self._signs: tuple[object, ...] = ()
        self._held: list[Finding] = []
        """What the rules that would end a run have found since the row at which the signs changed."""
        self.quiet_seconds = 0.0
        self.running_seconds = 0.0

    def plan(self, total_steps: int | None) -> None:
        """Takes how many steps the run is to make."""
        self._limits = replace(self._limits, total_steps=total_steps)

    def cut(self, step: int) -> None:
        """Rows after this `_step` at W&B are gone: those that come in their place are judged."""
        if self.judged is not None:
            self.judged = min(self.judged, step)

    def feed(self, progress: Progress, rows: list[Row], events: list[Row], rows_left: int) -> None:
        """Takes what is new into `progress`, and judges the rows that no process has judged yet.

        Args:
            progress: What has come before.
            rows: New rows of metrics.
            events: New events.
            rows_left: How many rows are there after these.
        """
        progress.feed([], events)
        for i, row in enumerate(rows):
            progress.feed([row], [])
            step = wandb_step(row)
            if self.judged is None or step <= self.judged:
                continue
            self.judged = step
            left = rows_left + len(rows) - 1 - i
            if left < ROW_BY_ROW:
                self._signs, self._held = (), []
                self._check(progress, quiet_seconds=0.0)
                continue
            self._look_for_stops(progress)
            if progress.rows - self._checked > left // SHARE:
                self._check(progress, quiet_seconds=0.0)

    def judge(self, progress: Progress) -> None:
        """Looks at the run as it is now. Alerts that an earlier process raised are not raised again."""
        self._check(progress, self.quiet_seconds)

    def _check(self, progress: Progress, quiet_seconds: float) -> None:
        self._recall(progress)
        view = view_of(
            progress,
            self._limits,
            now=time.time(),
            running_seconds=self.running_seconds,
            quiet_seconds=quiet_seconds,
        )
        self._raise(self._gate.passed(inspect(view), progress.rows, self._checked), progress)
        self._checked = progress.rows

    def _look_for_stops(self, progress: Progress) -> None:
        signs = stop_signs(progress, self._limits)
        if signs == self._signs:
            return
        self._recall(progress)
        self._gate.passed(self._held, progress.rows - 1)  # it went on until then
        self._signs, self._held = signs, inspect_stops(view_of(progress, self._limits))
        self._raise(self._gate.passed(self._held, progress.rows), progress)

    def _recall(self, progress: Progress) -> None:
        if self._first:
            self._gate.remember(progress.alerts, progress.rows)
            self._first = False

    def _raise(self, findings: list[Finding], progress: Progress) -> None:
        for finding in findings:
            self.run.append_event("alert", **self._as_alert(finding, progress))

    def _as_alert(self, finding: Finding, progress: Progress) -> dict[str, object]:
        fields = alert_fields(finding, progress)
        if finding.verdict is None:
            return fields
        how = f"nothing was stopped: wandb_stop_run, or rl-cli runs stop {self.run.id}, asks W&B to stop it"
        return {**fields, "severity": "critical" if finding.verdict == "failed" else "warning", "action": how}
