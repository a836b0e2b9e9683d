"""Who has asked that a run stop: in its directory, or by a signal to its supervisor."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

from rl_cli.runs.run_dir import RunDir


class StopRequests:
    """Of one run.

    Args:
        run: The run.
    """

    def __init__(self, run: RunDir) -> None:
        self.run = run
        self._told: dict[str, Any] | None = None

    def take_signal(self, number: int) -> None:
        """A signal means stop. It is kept here too: on a full disk it may not get into a file."""
        by, reason = "the system", f"the supervisor got {signal.Signals(number).name}"
        self._told = self._told or {"by": by, "reason": reason, "now": False}
        with suppress(OSError):
            self.run.request_stop(by, reason)

    def first(self) -> dict[str, Any] | None:
        """`by`, `reason`, and whether it is to end `now`; None if nobody asked."""
        return self.run.stop_requested() or self._told
