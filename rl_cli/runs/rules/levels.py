"""Robust figures about a curve: where it is, how much it scatters, whether it rises.

Each looks at a bounded number of points, and a few odd ones do not move it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, median

from rl_cli.runs.curves import Curve

WINDOW = 5
"""Points that a level is the median of."""
HISTORY = 200
"""Points that a trend is looked for in, at most."""


def level(curve: Curve, count: int = WINDOW, before: int = 0) -> float | None:
    """The median of `count` points, without the `before` newest; None unless there are as many."""
    values = curve.last(count, before)
    return median(values) if len(values) == count else None


def start(curve: Curve, count: int = 2 * WINDOW) -> float | None:
    """The median of the first points; None before they are over and as many have followed."""
    values = curve.first(count)
    return median(values) if len(values) == count and len(curve) >= 2 * count else None


def scatter(values: Sequence[float]) -> float:
    """The standard deviation of one step, whatever the trend: from the differences of neighbours.

    The mean of |b - a| for normal a, b of deviation s is 2 s / sqrt(pi).
    """
    gaps = [abs(b - a) for a, b in pairwise(values)]
    return fmean(gaps) * math.sqrt(math.pi) / 2 if gaps else 0.0


def scale(curve: Curve) -> float:
    """What a change of this figure is measured against.

    Its highest level, or, for a figure that is negative at times, the range of its levels.
    """
    highest, lowest = curve.highest(), curve.lowest()
    if highest is None or lowest is None:
        return 0.0
    return highest[1] if lowest[1] >= 0 else highest[1] - lowest[1]


def rise(values: Sequence[float]) -> tuple[float, float]:
    """How much the second half is above the first, and the standard error of that."""
    half = len(values) // 2
    if half < 2:
        return 0.0, math.inf
    gain = fmean(values[-half:]) - fmean(values[:half])
    return gain, scatter(values) * math.sqrt(2 / half)
