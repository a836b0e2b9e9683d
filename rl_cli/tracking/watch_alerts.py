"""The health rules on a watched run: whatever they find is an alert, and nothing is stopped."""

from __future__ import annotations

import time

from rl_cli.runs.health import AlertGate, Finding, Limits, alert_fields, inspect, view_of
from rl_cli.runs.progress import Progress
from rl_cli.runs.run_dir import RunDir


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
        self.quiet_seconds = 0.0
        self.running_seconds = 0.0

    def judge(self, progress: Progress) -> None:
        """Looks at the run as it is now. Alerts that an earlier process raised are not raised again."""
        if self._first:
            self._gate.remember(progress.alerts, progress.rows)
            self._first = False
        view = view_of(
            progress,
            self._limits,
            now=time.time(),
            running_seconds=self.running_seconds,
            quiet_seconds=self.quiet_seconds,
        )
        for finding in self._gate.passed(inspect(view), progress.rows):
            self.run.append_event("alert", **self._as_alert(finding))

    def _as_alert(self, finding: Finding) -> dict[str, object]:
        fields = alert_fields(finding)
        if finding.verdict is None:
            return fields
        how = f"nothing was stopped: wandb_stop_run, or rl-cli runs stop {self.run.id}, asks W&B to stop it"
        return {**fields, "severity": "critical" if finding.verdict == "failed" else "warning", "action": how}
