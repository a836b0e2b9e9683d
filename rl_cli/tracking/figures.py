"""Metrics of a history in few figures: exact extremes over all rows, and a thinned series."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass, field
from typing import Any

from rl_cli.runs.curves import as_number, mean_of

AXES = ("global_step", "train/global_step", "training/global_step", "trainer/global_step", "step")
"""What a row's step is read from, else W&B's own `_step`, which counts calls of log()."""
MOST_SERIES = 400


def axis_of(row: dict[str, Any]) -> str:
    """The name under which a run logs its step."""
    return next((axis for axis in AXES if isinstance(row.get(axis), int)), "_step")


@dataclass
class _Series:
    steps: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))


class Figures:
    """Adds up rows.

    Args:
        keys: The metrics that count; None for all.
        axis: What their steps are read from; None finds it by the first row.
    """

    def __init__(self, keys: list[str] | None, axis: str | None) -> None:
        self._keys, self._axis = keys, axis
        self._series: dict[str, _Series] = {key: _Series() for key in keys or []}
        self._names: dict[str, None] = {}
        self.rows = 0

    def add(self, row: dict[str, Any]) -> None:
        self.rows += 1
        if self._axis is None:
            self._axis = axis_of(row)
        step = as_number(row.get(self._axis))
        step = as_number(row.get("_step", self.rows)) if step is None else step
        if len(self._names) < MOST_SERIES:
            self._names.update(dict.fromkeys(name for name in row if not name.startswith("_")))
        for name in self._keys or self._names:
            value = as_number(row.get(name))
            if value is not None:
                series = self._series.setdefault(name, _Series())
                series.steps.append(step or 0.0)
                series.values.append(value)

    def result(self, points: int) -> dict[str, Any]:
        """{"rows", "axis", "metrics", "names"}: see `rl_cli.tracking.sdk.Sdk.history`."""
        metrics = {name: _figures(series, points) for name, series in self._series.items()}
        return {"rows": self.rows, "axis": self._axis, "metrics": metrics, "names": sorted(self._names)}


def _figures(series: _Series, points: int) -> dict[str, Any]:
    """Exact first, last, lowest and highest value, each as [step, value]; at most `points` others.

    Where a step was logged again, as by a run that went back to a checkpoint, the last value counts.
    """
    last = dict(zip(series.steps, series.values, strict=True))
    steps = sorted(last)
    finite = [step for step in steps if math.isfinite(last[step])]

    def point(step: float) -> list[float]:
        return [int(step) if step.is_integer() else step, last[step]]

    if not finite:
        return {"count": len(steps), "not_finite": len(steps), "points": []}
    chosen = finite if len(finite) <= points else _evenly(finite, points)
    backwards = sum(1 for a, b in zip(series.steps, series.steps[1:], strict=False) if b < a)
    return {
        "count": len(steps),
        "first": point(finite[0]),
        "last": point(finite[-1]),
        "min": point(min(finite, key=lambda step: last[step])),
        "max": point(max(finite, key=lambda step: last[step])),
        "mean": mean_of([last[step] for step in finite]),
        **({"not_finite": len(steps) - len(finite)} if len(finite) < len(steps) else {}),
        **({"went_back": backwards} if backwards else {}),
        "points": [point(step) for step in chosen],
        **({"points_are": f"{len(chosen)} of {len(finite)}"} if len(chosen) < len(finite) else {}),
    }


def _evenly(steps: list[float], count: int) -> list[float]:
    width = (len(steps) - 1) / max(1, count - 1)
    return [steps[round(i * width)] for i in range(count)]
