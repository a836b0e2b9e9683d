"""How far a batch is: what a person who waits wants to know."""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

from rl_cli.core.cuts import one_line
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.generation.outcome import Outcome

RECENT_SECONDS = 60.0
"""The rate is that of the last minute."""

LONGEST_TROUBLE = 300


@dataclass
class Progress:
    """Counts of one start of a batch, and of those before it."""

    items: int | None = None
    """Items that this start looks at: by the lines of the input until all are read; None: not known yet."""
    expected: int | None = None
    """Samples that there will be in all; None: not known yet."""
    read: int = 0
    """Items that were read so far."""
    done: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    """By reason."""
    in_flight: int = 0
    dollars: float = 0.0
    """Of all starts."""
    marks: Counter[str] = field(default_factory=Counter)
    """Of this start's rows."""
    allowed: int = 0
    """Requests that may go out at once now."""
    bad_rows: int = 0
    note: str = ""
    """What a person should know now; empty where there is nothing."""
    trouble: str = ""
    """The latest error, in one line without secrets, until something goes well again."""
    heard_at: float = field(default_factory=time.monotonic)
    """When something last happened in any conversation, on the clock of time.monotonic()."""
    _recent: deque[float] = field(default_factory=deque)

    @property
    def ended(self) -> int:
        return self.done + self.failed.total()

    def heard(self) -> None:
        """Something happened in a conversation."""
        self.heard_at = time.monotonic()

    def failing(self, error: str) -> None:
        """Something went wrong, and is tried again or was not; "" when it goes well again."""
        self.trouble = one_line(error, LONGEST_TROUBLE)

    def add(self, outcome: Outcome) -> None:
        """One more sample has ended, and is in the ledger."""
        if outcome.state == "done":
            self.done += 1
        else:
            self.failed[outcome.reason or "unknown"] += 1
        if outcome.row:
            self.marks.update(outcome.row["marks"])
        self._recent.append(time.monotonic())

    def rate(self) -> float | None:
        """Samples a second; None before two have ended."""
        now = time.monotonic()
        while self._recent and self._recent[0] < now - RECENT_SECONDS:
            self._recent.popleft()
        if len(self._recent) < 2:
            return None
        return len(self._recent) / max(now - self._recent[0], 1e-3)

    def seconds_left(self) -> float | None:
        """None where nobody can tell."""
        rate = self.rate()
        if rate is None or self.expected is None:
            return None
        return max(0, self.expected - self.ended) / rate


def expected_items(config: BatchConfig) -> int | None:
    """So many items at most, by the lines of the input; None where only reading it all would tell."""
    path = Path(config.input)
    if path.suffix.lower() not in (".jsonl", ".ndjson") or not path.is_file():
        return config.max_samples
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(2**20):
            lines += block.count(b"\n")
            last = block[-1:]
    items = max(0, lines + (last != b"\n") - config.eval_held_out)
    return min(items, config.max_samples or items)
