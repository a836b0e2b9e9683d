"""Robust figures about a curve: where it is, how much it scatters, whether it rises.

Each looks at a bounded number of points, and a few odd ones do not move it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import fmean, median

from rl_cli.runs.curves import SMOOTH, Curve

WINDOW = 5
"""Points that a level is the median of."""
HISTORY = 200
"""Points that a trend is looked for in, at most."""
FULL = 0.8
"""Reward or accuracy from which there is little left to gain."""
USUAL_NOISE, NOISE_COUNT = 0.04, 4
MOST_NOISE = 0.065
"""Accuracies are not taken to scatter by more: on 64 problems they do."""


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

    Their largest tenth is left out: outliers. The mean of the others, |b - a| for normal a, b of deviation s,
    is 0.929 s.
    """
    gaps = sorted([abs(b - a) for a, b in pairwise(values)])
    kept = gaps[: max(1, math.floor(0.9 * len(gaps)))]
    return fmean(kept) / 0.929 if kept else 0.0


def drift(values: Sequence[float]) -> float:
    """The standard deviation of a mean of SMOOTH points, whatever the trend, where values drift slowly, too.

    From the second differences of such means, a mean's length apart: |a - 2b + c| of deviation s has the mean
    s sqrt(12 / pi). For few points, 2.5 times what independent ones would have.
    """
    alone = scatter(values) / math.sqrt(SMOOTH)
    if len(values) < 4 * SMOOTH:
        return 2.5 * alone
    sums = [0.0, *accumulate(values)]
    means = [(sums[i + SMOOTH] - sums[i]) / SMOOTH for i in range(len(values) - SMOOTH + 1)]
    bends = [
        abs(means[i] - 2 * means[i + SMOOTH] + means[i + 2 * SMOOTH])
        for i in range(0, len(means) - 2 * SMOOTH, 3)
    ]
    return max(1.5 * alone, fmean(bends) / math.sqrt(12 / math.pi))


def scale(curve: Curve) -> float:
    """What a change of this figure is measured against.

    Its highest level, or, for a figure that is negative at times, the range of its levels.
    """
    highest, lowest = curve.highest(), curve.lowest()
    if highest is None or lowest is None:
        return 0.0
    return highest[1] if lowest[1] >= 0 else highest[1] - lowest[1]


def whole_range(curve: Curve) -> float:
    """From the lowest to the highest reward there is: 1 or 2 for one from 0, or -1, to 1; 0: unknown."""
    best, lowest = curve.best(), curve.lowest()
    if best is None or lowest is None or best[1] > 1 or lowest[1] < -1:
        return 0.0
    return 1.0 if lowest[1] >= 0 else 2.0


def nearly_full(level: float, curve: Curve) -> bool:
    """Whether there is little left to gain, for a reward between 0 (or -1) and 1."""
    whole = whole_range(curve)
    return whole > 0 and level >= 1 - (1 - FULL) * whole


def accuracy_noise(values: Sequence[float]) -> float:
    """The standard deviation of one validation, from how it scatters about its trend.

    |a - 2b + c| of three in a row has the mean 1.95 s. A few say little: they count beside NOISE_COUNT that
    scatter as 128 problems do.
    """
    bends = [abs(a - 2 * b + c) / 1.95 for a, b, c in zip(values, values[1:], values[2:], strict=False)]
    squares = NOISE_COUNT * USUAL_NOISE**2 + len(bends) * (fmean(bends) if bends else 0.0) ** 2
    return min(MOST_NOISE, math.sqrt(squares / (NOISE_COUNT + len(bends))))


def better(accuracies: Sequence[float]) -> bool:
    """Whether the second half of the validations is above the first, by more than they scatter."""
    half = len(accuracies) // 2
    if not half:
        return False
    gain = fmean(accuracies[-half:]) - fmean(accuracies[:half])
    return gain > 0.02 + 1.5 * accuracy_noise(accuracies) * math.sqrt(2 / half)


def rise(values: Sequence[float]) -> tuple[float, float]:
    """How much the second half is above the first, and the standard error of that."""
    half = len(values) // 2
    if half < 2:
        return 0.0, math.inf
    gain = fmean(values[-half:]) - fmean(values[:half])
    return gain, scatter(values) * math.sqrt(2 / half)
