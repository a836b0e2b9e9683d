"""Fewer points of a curve for the same picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rl_cli.runs.curves import Curve

Point = tuple[float, float]


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """At most `most` points (at least 5) that draw the same curve in `most` / 4 columns.

    Of each stretch the first, the last, the lowest and the highest stay; where it has values that are not
    finite, one of them takes the place of the last. Points keep their order.
    """
    return [points[i] for i in _kept([y for _, y in points], most)]


def thinned(curve: Curve, most: int) -> list[Point]:
    """The same of a curve, without a list of all its points."""
    return [(float(curve.steps[i]), curve.values[i]) for i in _kept(curve.values, most)]


def _kept(values: Sequence[float], most: int) -> Sequence[int]:
    count = len(values)
    if count <= most:
        return range(count)
    columns = max(1, most // 4)
    kept: list[int] = []
    for column in range(columns):
        kept += _of_stretch(values, range(column * count // columns, (column + 1) * count // columns))
    return kept


def _of_stretch(values: Sequence[float], stretch: range) -> list[int]:
    finite = [i for i in stretch if math.isfinite(values[i])]
    if not finite:
        return [stretch[0]]
    kept = {finite[0], min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)}
    broken = next((i for i in stretch if not math.isfinite(values[i])), None)
    kept.add(finite[-1] if broken is None else broken)
    return sorted(kept)
