"""When a run is to be judged, and who has taken which judgement: checks.json.

Due times are counted from the moment the run was `running`: the first after health.first_check_seconds, or
after 5 % of budget.max_hours where that is given and sooner; then every health.check_every_seconds. They
are kept with the run, so that any process can ask for them, and each is taken once: by whoever takes it
first. Due times that passed while nobody asked count as one.
"""

from __future__ import annotations

import math
import time
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import now_text, seconds_of, time_text

PLANNED_SHARE = 0.05


class DueChecks:
    def __init__(self, run: RunDir) -> None:
        self.run = run
        self.path = run.path / "checks.json"
        config = run.config()
        hours = config.budget.max_hours
        early = math.inf if hours is None else PLANNED_SHARE * hours * 3600
        self.first_seconds = min(config.health.first_check_seconds, early)
        self.every_seconds = config.health.check_every_seconds

    def next_due(self) -> float | None:
        """Unix time of the next judgement that nobody has taken; None before the run is running."""
        start = seconds_of(self.run.state().get("running_since"))
        return None if start is None else self._due(start, self._taken()["checks"])

    def take_check(self) -> bool:
        """Takes what is due now; False if nothing is, or somebody else has taken it."""
        with self._locked():
            start, taken = seconds_of(self.run.state().get("running_since")), self._taken()
            if start is None or time.time() < self._due(start, taken["checks"]):
                return False
            late = time.time() - start - self.first_seconds
            record = {"due": time_text(self._due(start, taken["checks"])), "taken": now_text()}
            taken["checks"] = math.floor(late / self.every_seconds) + 1
            self._write({**taken, "log": [*taken["log"], record][-100:]})
            return True

    def take_alerts(self, alerts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Takes the alerts (all of the run's are given) that nobody has judged yet."""
        if len(alerts) <= self._taken()["alerts"]:
            return []
        with self._locked():
            taken = self._taken()
            new = alerts[taken["alerts"] :]
            if new:
                self._write({**taken, "alerts": len(alerts)})
            return new

    def _due(self, start: float, checks: int) -> float:
        return start + self.first_seconds + checks * self.every_seconds

    def _taken(self) -> dict[str, Any]:
        empty: dict[str, Any] = {"checks": 0, "alerts": 0, "log": []}
        try:
            taken = read_json(self.path)
        except (OSError, ValueError, RecursionError):
            return empty
        right = isinstance(taken, dict) and all(type(taken.get(k, v)) is type(v) for k, v in empty.items())
        return {**empty, **taken} if right else empty

    def _write(self, taken: dict[str, Any]) -> None:
        write_json(self.path, taken)

    def _locked(self) -> Any:
        import filelock

        return filelock.FileLock(self.run.path / ".checks.lock", timeout=10)
