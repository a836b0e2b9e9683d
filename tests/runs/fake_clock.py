"""A machine's clocks, moved by a test: time passes, the machine starts anew, somebody sets the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rl_cli.core.files import write_json
from rl_cli.runs.checks.clock import Moment
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.times import time_text
from tests.runs.kit import replay_config

START = 1_772_323_200.0
"""2026-03-01 00:00 UTC."""


class FakeClock:
    def __init__(self, wall: float = START) -> None:
        self.wall, self.boots, self.seconds = wall, 1, 1000.0

    def now(self) -> Moment:
        return Moment(self.wall, f"boot-{self.boots}", self.seconds)

    def pass_(self, seconds: float) -> None:
        """Time passes, awake or asleep."""
        self.wall, self.seconds = self.wall + seconds, self.seconds + seconds

    def set_by(self, seconds: float) -> None:
        """Somebody sets the clock."""
        self.wall += seconds

    def start_anew(self, seconds: float) -> None:
        """The machine is off for so long."""
        self.wall, self.boots, self.seconds = self.wall + seconds, self.boots + 1, 5.0


def running(home: Path, clock: FakeClock, health: dict[str, Any], name: str = "demo") -> RunDir:
    """A run that is running since now; its supervisor is on another host."""
    run = create_run(replay_config(name, health), home)
    changes = {
        "state": "running",
        "running_since": time_text(clock.wall),
        "running_clock": clock.now().to_dict(),
        "heartbeat": "2100-01-01T00:00:00.000Z",
        "supervisor": {"pid": 1, "started": 1.0, "host": "another-host"},
    }
    write_json(run.path / "state.json", {**run.state(), **changes})
    return run
