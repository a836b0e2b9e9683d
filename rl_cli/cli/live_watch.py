"""A run on a terminal while somebody looks: a block that is kept up to date, and above it what happened."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from typing import Any

from rl_cli.cli.event_lines import progress_line
from rl_cli.cli.live_block import LiveBlock
from rl_cli.cli.watch_view import Watched, block
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.follow import Follower
from rl_cli.runs.state_file import LIVE
from rl_cli.runs.times import seconds_of
from rl_cli.runs.tracking_file import disagreements, in_words, read_tracking

ASK_EVERY_SECONDS = 2.0
"""Between two looks at what is not in the files that are followed."""
PAINT_EVERY_SECONDS = 1.0
"""Unless something happened; figures that change faster cannot be read."""

TROUBLE = ("behind", "unavailable", "unauthorised", "incomplete")


def is_live_terminal() -> bool:
    """Whether lines on standard output can be repainted."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")


class LiveWatch:
    """Shows what a `Follower` finds.

    Args:
        follower: It is asked for news by whoever owns it.
    """

    def __init__(self, follower: Follower) -> None:
        self._follower = follower
        self._block = LiveBlock(sys.stdout)
        self._watched = Watched(follower.run.id, follower.state, follower.progress)
        self._asked_at = self._painted_at = -math.inf
        self._checks: DueChecks | None = None
        self._caught_up = False
        signal.signal(signal.SIGCONT, lambda *_: self._block.leave())  # the shell has written meanwhile

    def show(self, news: list[dict[str, Any]]) -> None:
        """Paints the block as things stand now; what is new since the first call stays above it."""
        told = [_line(event) for event in news if event.get("kind") != "metrics"]
        at_once = self._follower.over and not self._caught_up
        above = [line for line in told if line] if self._caught_up or at_once else []
        self._caught_up = True
        self._watched.state = self._follower.state
        now = time.monotonic()
        if now - self._asked_at >= ASK_EVERY_SECONDS:
            self._asked_at = now
            self._ask()
        if not above and now - self._painted_at < PAINT_EVERY_SECONDS:
            return
        self._painted_at = now
        columns, rows = self._block.size()
        lines = [] if at_once else block(self._watched, columns, rows, time.time())
        self._block.paint(lines, above)

    def end_turn(self) -> None:
        """Takes the block away; what stands above it stays."""
        self._block.paint([])

    def _ask(self) -> None:
        live = self._follower.state["state"] in LIVE
        self._checks = self._checks or DueChecks(self._follower.run)
        left = self._checks.seconds_left() if live else None
        self._watched.stall_seconds = self._checks.stall_seconds
        self._watched.next_check = None if left is None else time.time() + left
        self._watched.remarks = disagreements(self._follower.run)
        tracking = read_tracking(self._follower.run)
        if tracking and tracking["state"] in TROUBLE:
            self._watched.remarks.append(in_words(tracking))


def _line(event: dict[str, Any]) -> str | None:
    line = progress_line(event)
    when = seconds_of(str(event.get("time"))) or time.time()
    return f"{time.strftime('%H:%M:%S', time.localtime(when))}  {line}" if line else None
