"""The time that checks are counted in: it goes on while the machine sleeps, and no clock change moves it."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Protocol

from rl_cli.core.processes import ProcessIdentity


@dataclass(frozen=True)
class Moment:
    """One moment, on both clocks."""

    wall: float
    """Unix time, as whoever sets the machine's clock has it."""
    boot: str = ""
    """The kernel's id of this start of the machine; empty where that is not known."""
    seconds: float = 0.0
    """Since the machine started, sleep included."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Any) -> Moment | None:
        """None for what `to_dict` has not made."""
        if not isinstance(value, dict) or not isinstance(value.get("boot"), str):
            return None
        numbers = (value.get("wall"), value.get("seconds"))
        if not all(isinstance(n, int | float) and 0 <= n < 2**53 for n in numbers):
            return None
        return cls(float(value["wall"]), value["boot"], float(value["seconds"]))


class Clock(Protocol):
    def now(self) -> Moment: ...


class SystemClock:
    """This machine's."""

    def now(self) -> Moment:
        # Elsewhere no id of the machine's start is known, and the wall clock counts.
        seconds = time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()
        return Moment(time.time(), _boot(), seconds)


def seconds_between(earlier: Moment, later: Moment) -> float:
    """Seconds that passed; never negative.

    Within one start of the machine they are exact. Across two, or on two machines, the wall clocks decide.
    """
    same = earlier.boot and earlier.boot == later.boot
    return max(0.0, later.seconds - earlier.seconds if same else later.wall - earlier.wall)


@cache
def _boot() -> str:
    return ProcessIdentity.current().boot
