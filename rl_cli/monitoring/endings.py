"""Which ends of runs the person has been told: each once, whoever judged the run. Kept in monitor.json."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.monitoring.heartbeat import FILE
from rl_cli.runs.state_file import State, is_over
from rl_cli.runs.times import seconds_of, time_text

BACK_SECONDS = 86_400.0
"""What ended so long before the last look is news no more; a first look tells the last day."""


class Endings:
    """The ends of the runs of a home. One process at a time uses them: the one that does the checks.

    Args:
        home: RL_CLI_HOME.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        record = self._record()
        now = time.time()
        looked = seconds_of(record.get("looked") if isinstance(record.get("looked"), str) else None)
        self._since = min(now, looked or now) - BACK_SECONDS
        told = record.get("told")
        self._told: dict[str, str] = (
            {str(k): str(v) for k, v in told.items()} if isinstance(told, dict) else {}
        )

    def is_news(self, run_id: str, state: State) -> bool:
        """Whether the run is over and nobody was told."""
        if not is_over(state) or self._told.get(run_id) == _end(state):
            return False
        ended = seconds_of(state.get("ended"))
        return ended is None or ended >= self._since

    def told(self, run_id: str, state: State) -> None:
        self._told[run_id] = _end(state)

    def to_dict(self) -> dict[str, Any]:
        """What monitor.json keeps of them: when it looked, and what it told that is still news."""
        kept = {k: v for k, v in self._told.items() if (seconds_of(v) or self._since) >= self._since}
        return {"looked": time_text(time.time()), "told": kept}

    def save(self) -> None:
        """Writes them beside whatever else stands in the file; raises OSError."""
        write_json(self._path, {**self._record(), **self.to_dict()})

    def _record(self) -> dict[str, Any]:
        try:
            record = read_json(self._path)
        except (OSError, ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}


def _end(state: State) -> str:
    """What tells one end of a run from the next, after a resume."""
    return str(state.get("reason") if state.get("damaged") else state.get("ended") or state["state"])
