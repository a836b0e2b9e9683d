"""The health rules, applied to a run while it goes on: alerts are raised, a verdict is handed back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from rl_cli.runs import health
from rl_cli.runs.progress import Progress
from rl_cli.runs.recent_samples import RecentSamples
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision.room import RoomWatch


class Judging:
    """Of one run.

    Args:
        run: The run.
        cooldown: Rows, as health.alerts.cooldown_steps has them.
    """

    def __init__(self, run: RunDir, cooldown: int) -> None:
        self.run = run
        self.gate = health.AlertGate(cooldown)
        self.samples = RecentSamples(run)
        self.room = RoomWatch(run.path)

    def surroundings(self, quiet: float, running: float, refused: str | None) -> dict[str, Any]:
        """What the rules see besides figures, at this moment.

        Args:
            quiet: Seconds for which the trainer has written nothing.
            running: Seconds that all attempts have taken.
            refused: Why nothing more may be spent.
        """
        known = {"now": time.time(), "quiet_seconds": quiet, "running_seconds": running, "refused": refused}
        return {**known, "samples": self.samples.read(), **self.room.look(time.monotonic())}

    def look(
        self,
        progress: Progress,
        limits: health.Limits,
        surroundings: Mapping[str, Any],
        has_ended: Callable[[], bool],
    ) -> health.Finding | None:
        """What ends the run, if something does; else its alerts are raised.

        Args:
            progress: What its rows and events add up to.
            limits: What its config allows.
            surroundings: Of the moment at which its files were read.
            has_ended: Whether its trainer ended by itself.
        """
        findings = health.inspect(health.view_of(progress, limits, **surroundings))
        if findings and findings[0].verdict and has_ended():
            # Its own word counts, but not above figures that are no numbers.
            findings = [one for one in findings if one.verdict is None or one.rule == "not_finite"]
        if findings and findings[0].verdict:
            return findings[0]
        for finding in self.gate.passed(findings, progress.rows):
            self.alert(finding, progress)
        return None

    def alert(self, finding: health.Finding, progress: Progress) -> None:
        with suppress(OSError):  # a full disk
            self.run.append_event("alert", **health.alert_fields(finding, progress))
