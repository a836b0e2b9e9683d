"""Which ends of runs the person has been told: each once, whoever judged the run. Kept in ends_told.json."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from rl_cli.core.files import read_json, write_json
from rl_cli.runs.state_file import State, is_over
from rl_cli.runs.times import seconds_of, time_text

FILE = "ends_told.json"
BACK_SECONDS = 86_400.0
"""What ended so long before the last look is news no more; a first look tells the last day."""


class Endings:
    """The ends of the runs of a home. One process at a time uses them: the one that does the checks.

    Args:
        home: RL_CLI_HOME.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / FILE
        try:
            record = read_json(self._path)
        except (OSError, ValueError, RecursionError):
            record = {}
        record = record if isinstance(record, dict) else {}
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
        """Takes the end; nobody who looks later tells it."""
        self._told[run_id] = _end(state)
        with suppress(OSError):  # a full disk: it was told all the same
            self.save()

    def save(self) -> None:
        """Keeps when it looked, and what it told that is still news; raises OSError."""
        kept = {k: v for k, v in dict(self._told).items() if (seconds_of(v) or self._since) >= self._since}
        write_json(self._path, {"looked": time_text(time.time()), "told": kept})


def _end(state: State) -> str:
    """What tells one end of a run from the next, after a resume."""
    return str(state.get("reason") if state.get("damaged") else state.get("ended") or state["state"])
