"""How far a batch is, on a screen: a bar that stays in place, or lines where there is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rl_cli.cli.output import say

if TYPE_CHECKING:
    from rl_cli.cli.live_block import Line, LiveBlock
    from rl_cli.data.generation.progress import Progress

LINE_SECONDS = 15.0
"""Between two lines where there is no terminal."""
BAR = 30
MOST_BAD_ROWS = 20
"""So many are told one by one."""
MOST_NAMES = 6


class BatchDisplay:
    """Shows a Progress each time that it is given one."""

    def __init__(self, block: LiveBlock | None) -> None:
        self._block = block
        self._told_at = float("-inf")
        self._last = self._note = ""
        self._troubled = False
        self._bad_rows = 0
        self._above: list[str] = []

    def show(self, progress: Progress) -> None:
        if self._block is not None:
            self._block.paint(block_of(progress), self._above)
            self._above = []
        elif self._is_due(progress):
            self._told_at, self._note = time.monotonic(), progress.note
            self._troubled = self._troubled or bool(progress.trouble)
            self.flush(progress)

    def _is_due(self, progress: Progress) -> bool:
        """At once for a note, and for the first trouble: later ones can change with every request."""
        new = progress.note != self._note or (progress.trouble and not self._troubled)
        return bool(new) or time.monotonic() - self._told_at >= LINE_SECONDS

    def flush(self, progress: Progress) -> None:
        """Says it now, where that is something new and no block shows it."""
        if self._block is None and (line := line_of(progress)) != self._last:
            self._last = line
            say(line, error=True)

    def bad_row(self, where: str, why: str) -> None:
        self._bad_rows += 1
        if self._bad_rows > MOST_BAD_ROWS:
            return
        more = "; further ones are only counted" if self._bad_rows == MOST_BAD_ROWS else ""
        text = f"{where} is passed over: {why}{more}"
        if self._block is not None:
            self._above.append(text)
        else:
            say(text, error=True)


@contextmanager
def display() -> Iterator[BatchDisplay]:
    """On standard error; a terminal's last lines while it is open."""
    if not sys.stderr.isatty():
        yield BatchDisplay(None)
        return
    from rl_cli.cli.live_block import LiveBlock

    block = LiveBlock(sys.stderr)
    try:
        yield BatchDisplay(block)
    finally:
        block.leave()


def line_of(progress: Progress) -> str:
    """One line without colours."""
    parts = [_counted(progress), *_figures(progress)]
    if progress.failed.total():
        parts.append(f"failed: {_names(progress.failed)}")
    if progress.marks:
        parts.append(f"marked: {_names(progress.marks)}")
    trouble = [f"latest error: {progress.trouble}"] if progress.trouble else []
    return "; ".join([", ".join(parts), *trouble, *([progress.note] if progress.note else [])])


def block_of(progress: Progress) -> list[Line]:
    """The lines for a terminal."""
    from rl_cli.cli.live_block import Piece

    share = min(1.0, progress.ended / progress.expected) if progress.expected else 0.0
    full = round(BAR * share)
    lines: list[Line] = [
        [
            Piece("█" * full, "good"),
            Piece("░" * (BAR - full), "dim"),
            Piece(f" {_counted(progress)}", "bold"),
        ],
        [Piece("  ".join(_figures(progress)))],
    ]
    if progress.failed.total():
        lines.append([Piece(f"failed: {_names(progress.failed)}", "bad")])
    if progress.marks:
        lines.append([Piece(f"marked: {_names(progress.marks)}", "dim")])
    if progress.trouble:
        lines.append([Piece(f"latest error: {progress.trouble}", "bad")])
    if progress.note:
        lines.append([Piece(progress.note, "warn")])
    return lines


def _counted(progress: Progress) -> str:
    of = f" of {progress.expected:,}" if progress.expected is not None else ""
    return f"{progress.ended:,}{of} ended"


def _figures(progress: Progress) -> list[str]:
    parts = [f"{progress.in_flight} in flight"]
    if (rate := progress.rate()) is not None:
        parts.append(f"{rate:.1f}/s" if rate >= 1 else f"{60 * rate:.1f}/min")
    parts.append(f"${progress.dollars:,.4f} spent")
    if (left := progress.seconds_left()) is not None:
        parts.append(f"{_time(left)} left")
    return parts


def _names(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    named = [f"{count} {name}" for name, count in ordered if count]
    more = f" and {len(named) - MOST_NAMES} more kinds" if len(named) > MOST_NAMES else ""
    return ", ".join(named[:MOST_NAMES]) + more


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
