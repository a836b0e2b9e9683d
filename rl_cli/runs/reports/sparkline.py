"""A curve in one line of text."""

from __future__ import annotations

import math

from rl_cli.runs.curves import Curve

BARS = "▁▂▃▄▅▆▇█"
BROKEN = "✕"
"""Where a stretch has a value that is not finite."""


def sparkline(curve: Curve, width: int) -> str:
    """The whole curve in at most `width` characters; each is the mean of a stretch."""
    count = len(curve)
    columns = min(width, count)
    stretches = [curve.values[i * count // columns : (i + 1) * count // columns] for i in range(columns)]
    means = [sum(values) / len(values) for values in stretches]
    known = [mean for mean in means if math.isfinite(mean)]
    if not known:
        return BROKEN * len(means)
    low, high = min(known), max(known)
    return "".join(_bar((mean - low) / (high - low) if high > low else 0.5, mean) for mean in means)


def _bar(height: float, mean: float) -> str:
    return BARS[min(len(BARS) - 1, int(height * len(BARS)))] if math.isfinite(mean) else BROKEN
