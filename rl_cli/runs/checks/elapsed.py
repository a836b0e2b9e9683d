"""How long a run has been running, told from anchors: moments at which that was known.

Within one start of the machine an anchor is exact. The first look in a new start makes a new anchor, told by
the wall clocks: what they say has passed has passed, and where they went back nothing has. So does a look
that finds the wall clock moved, or the anchor old, so that the next start of the machine is told from what
was last known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rl_cli.runs.checks.clock import Moment, seconds_between

MOVED_SECONDS = 1.0
"""A wall clock that is off by more was set."""
OLD_SECONDS = 300.0
KEPT = 8
"""Machines may share a home; each has its anchor."""


@dataclass(frozen=True)
class Anchor:
    moment: Moment
    elapsed: float
    """Seconds that the run had been running then."""

    def to_dict(self) -> dict[str, Any]:
        return {**self.moment.to_dict(), "elapsed": self.elapsed}


def read_anchors(value: Any) -> list[Anchor]:
    """Those in what `to_dict` has made, oldest first; all else is left out."""
    found = []
    for entry in value if isinstance(value, list) else []:
        moment = Moment.from_dict(entry)
        elapsed = entry.get("elapsed") if moment else None
        if moment and isinstance(elapsed, int | float) and 0 <= elapsed < 2**53:
            found.append(Anchor(moment, float(elapsed)))
    return found


def elapsed_at(anchors: Sequence[Anchor], now: Moment) -> float:
    """Seconds that the run has been running; `anchors` is not empty."""
    anchor = _own(anchors, now) or anchors[-1]
    return anchor.elapsed + seconds_between(anchor.moment, now)


def holds(anchors: Sequence[Anchor], now: Moment) -> bool:
    """Whether these will do; False where `with_anchor` is to add one."""
    own = _own(anchors, now)
    if own is None or not now.boot:
        return not now.boot
    age = now.seconds - own.moment.seconds
    return age < OLD_SECONDS and abs(now.wall - own.moment.wall - age) < MOVED_SECONDS


def with_anchor(anchors: Sequence[Anchor], now: Moment) -> list[Anchor]:
    """One more, in place of the one of this start of the machine."""
    others = [anchor for anchor in anchors if anchor.moment.boot != now.boot]
    return [*others, Anchor(now, elapsed_at(anchors, now))][-KEPT:]


def _own(anchors: Sequence[Anchor], now: Moment) -> Anchor | None:
    """The newest of this start of the machine."""
    return next((anchor for anchor in reversed(anchors) if anchor.moment.boot == now.boot), None)
