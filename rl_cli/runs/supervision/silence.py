"""How long a run's trainer has written nothing: only its own writing is progress."""

from __future__ import annotations

import time
from pathlib import Path

from rl_cli.runs.checks.clock import Moment, SystemClock, seconds_between
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import seconds_of


class Silence:
    """Counted on a clock that nobody sets, from the moment at which something was last seen to be written."""

    def __init__(self) -> None:
        self._heard = time.monotonic()
        self._sizes: tuple[int, ...] = ()

    def seconds(self) -> float:
        return time.monotonic() - self._heard

    def broken(self) -> None:
        """The trainer has written something now."""
        self._heard = time.monotonic()

    def look(self, run: RunDir, loading: bool) -> None:
        """Ends it if files besides metrics and events have grown.

        Args:
            run: The run.
            loading: Its trainer is not ready yet.
        """
        sizes = tuple(path.stat().st_size if path.exists() else 0 for path in _written_besides(run, loading))
        if sizes != self._sizes:
            self._sizes = sizes
            self.broken()

    def went_on(self, run: RunDir, loading: bool, heard: str | None, beaten: Moment | None) -> None:
        """It began before this process did: by the times of what the trainer wrote.

        Args:
            run: The run.
            loading: Its trainer is not ready yet.
            heard: Time of its newest row or event.
            beaten: The last heartbeat. The wall clock may have been set since: what passed is bounded by it.
        """
        times = [path.stat().st_mtime for path in _written_besides(run, loading) if path.exists()]
        if (row := seconds_of(str(heard))) is not None:
            times.append(row)
        self.broken()
        if not times:
            return
        newest, now = max(times), SystemClock().now()
        silence = now.wall - newest
        if beaten:
            silence = min(silence, max(0.0, beaten.wall - newest) + seconds_between(beaten, now))
        self._heard -= max(0.0, silence)


def _written_besides(run: RunDir, loading: bool) -> list[Path]:
    """Files besides metrics and events whose growth is progress: the log only until it has loaded."""
    return [run.path / "samples.jsonl", *([run.log_path("trainer")] if loading else [])]
