"""The figures of a run over its steps, in memory that a hundred thousand steps do not fill.

Steps may go backwards: a run that is resumed from a checkpoint logs some of them again. What was logged last
counts, and everything after that step is forgotten.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AXES = ("time", "phase", "step")
SMOOTH = 10
"""Points whose mean the extremes of a curve are looked for in."""
LARGEST = 1e100
IN_WORDS = {"nan": "NaN", "inf": "infinite", "-inf": "minus infinite"}
MOST_STEP = 2**53
"""Up to which floats tell steps apart."""
TEXT_NUMBERS = frozenset(["nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"])
"""In any case: our files say NaN and Infinity, other loggers write as str() does."""


def as_number(value: Any) -> float | None:
    """A figure as a float; NaN and infinities, which files hold as text, too. None for what is no figure."""
    if type(value) is float:
        return value
    if isinstance(value, str) and value.lower() in TEXT_NUMBERS:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def as_figure(value: Any) -> float | None:
    """The same, as curves hold it: what is beyond LARGEST is infinite, so that squares and sums fit."""
    number = as_number(value)
    if number is None or -LARGEST <= number <= LARGEST or math.isnan(number):
        return number
    return math.copysign(math.inf, number)


def as_step(value: Any) -> int | None:
    """A step; None for what is none, or further than any run gets."""
    right = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_STEP
    return value if right else None


def mean_of(values: Sequence[float]) -> float:
    """The mean of at least one figure of any size: NaN where there is none, as of both infinities."""
    try:
        return math.fsum(values) / len(values)
    except (OverflowError, ValueError):
        return sum(value / len(values) for value in values)


class Curve:
    """One figure: a value for each of some steps, in rising order.

    Its extremes are kept up to date, so that no question costs more for a longer run; a cut costs one pass.
    """

    def __init__(self, common: array[int] | None = None) -> None:
        """`common`: steps that it shares with others as long as it has a value for each of them."""
        self.steps = array("q") if common is None else common
        self.values = array("d")
        self.shares = common is not None
        self._forget()

    def own(self) -> None:
        """Takes steps of its own, if it has shared them until now."""
        if self.shares:
            self.steps, self.shares = self.steps[: len(self.values)], False

    def _forget(self) -> None:
        self._best: int | None = None
        self._smoothed = 0
        """Points that `_highest` and `_lowest` take into account."""
        self._highest: tuple[int, float] | None = None
        self._lowest: tuple[int, float] | None = None

    def __len__(self) -> int:
        return len(self.steps)

    def add(self, step: int, value: float) -> None:
        """Adds a point; what stands at this step or after it is forgotten first."""
        if not self.shares:
            if self.steps and step <= self.steps[-1]:
                self.cut(step)
            self.steps.append(step)
        self.values.append(value)
        self._look_at(len(self.values) - 1)

    def put(self, step: int, value: float) -> None:
        """Sets the point of one step, wherever it is; the others stay."""
        self.own()
        i = bisect_left(self.steps, step)
        if i == len(self.steps):
            self.add(step, value)
        elif self.steps[i] != step:
            self.steps.insert(i, step)
            self.values.insert(i, value)
            self._look_again()
        elif self.values[i] != value:
            self.values[i] = value
            self._look_again()

    def cut(self, step: int) -> None:
        """Forgets every point at `step` or after it."""
        keep = bisect_left(self.steps, step)
        if keep < len(self.values):
            del self.values[keep:]
            if not self.shares:
                del self.steps[keep:]
            self._look_again()

    def _look_again(self) -> None:
        self._forget()
        for i in range(len(self.values)):
            self._look_at(i)

    def _look_at(self, i: int) -> None:
        value = self.values[i]
        if (self._best is None or value > self.values[self._best]) and math.isfinite(value):
            self._best = i

    def _smooth(self) -> None:
        """Takes the points that are new since the last time into the extremes of the means."""
        for end in range(max(self._smoothed + 1, SMOOTH), len(self.values) + 1):
            window = self.values[end - SMOOTH : end]
            if not all(map(math.isfinite, window)):
                continue
            mean = math.fsum(window) / SMOOTH
            if self._highest is None or mean > self._highest[1]:
                self._highest = (self.steps[end - 1], mean)
            if self._lowest is None or mean < self._lowest[1]:
                self._lowest = (self.steps[end - 1], mean)
        self._smoothed = len(self.values)

    def best(self) -> tuple[int, float] | None:
        """(step, value) of the highest finite value, the earliest of equals; None where there is none."""
        return None if self._best is None else (self.steps[self._best], self.values[self._best])

    def since_best(self) -> int:
        """Points after the highest one; 0 where there is none."""
        return 0 if self._best is None else len(self.values) - 1 - self._best

    def highest(self) -> tuple[int, float] | None:
        """(last step, mean) of those SMOOTH points in a row whose mean is highest; None for fewer points."""
        self._smooth()
        return self._highest

    def lowest(self) -> tuple[int, float] | None:
        """(last step, mean) of those SMOOTH points in a row whose mean is lowest; None for fewer points."""
        self._smooth()
        return self._lowest

    def last(self, count: int, before: int = 0) -> list[float]:
        """The finite ones of the newest `count` values, oldest first; without the `before` newest of all."""
        end = len(self.values) - before
        return [value for value in self.values[max(0, end - count) : max(0, end)] if math.isfinite(value)]

    def sampled(self, count: int, most: int) -> list[float]:
        """The finite ones of at most `most` values, evenly spread over the newest `count`, oldest first."""
        every = -(-min(count, len(self.values)) // most) or 1
        picked = self.values[-1 : -count - 1 : -every]
        return [value for value in reversed(picked) if math.isfinite(value)]

    def until(self, step: int, count: int) -> list[float]:
        """The finite ones of the `count` values up to and with `step`."""
        end = bisect_left(self.steps, step + 1)
        return [value for value in self.values[max(0, end - count) : end] if math.isfinite(value)]

    def first(self, count: int) -> list[float]:
        """The finite ones of the oldest `count` values."""
        return [value for value in self.values[:count] if math.isfinite(value)]

    def at(self, step: int) -> float | None:
        """The value of exactly this step."""
        i = bisect_left(self.steps, step)
        return self.values[i] if i < len(self.steps) and self.steps[i] == step else None

    def points(self) -> list[tuple[float, float]]:
        """Every finite (step, value)."""
        pairs = zip(self.steps, self.values, strict=True)
        return [(float(step), value) for step, value in pairs if math.isfinite(value)]


def _figure(raw: Any) -> float | None:
    """As `as_figure`, faster for what is usual."""
    return raw if type(raw) is float and -LARGEST <= raw <= LARGEST else as_figure(raw)


@dataclass(frozen=True)
class NotFinite:
    """A figure that was NaN, infinite, or beyond LARGEST."""

    step: int
    name: str
    value: float
    """As it was logged: curves hold one beyond LARGEST as infinite."""

    def in_words(self) -> str:
        """What follows "is"."""
        return IN_WORDS.get(str(self.value), f"{self.value:.4g}, too large to go on with,")


class Curves:
    """All figures of one phase, by name.

    Args:
        kept: Whether a figure of that name gets a curve; of the others only `not_finite` is kept.
    """

    def __init__(self, kept: Callable[[str], bool] | None = None) -> None:
        self._kept = kept
        self._left_out: set[str] = set()
        self.by_name: dict[str, Curve] = {}
        self.steps = Curve()
        """Every step that has a row; its values mean nothing."""
        self.not_finite: list[NotFinite] = []
        """Where each figure was not finite for the first time, oldest first."""

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, name: str) -> Curve:
        """The curve of a figure; an empty one where it was never logged."""
        return self.by_name.get(name) or Curve()

    def add(self, step: int, figures: Mapping[str, Any]) -> None:
        """One row of figures. A step that is not after the last one forgets it and what came after it."""
        if self.steps.steps and step <= self.steps.steps[-1]:
            self.cut(step)
        self.steps.add(step, 0.0)
        for name, raw in figures.items():
            if name in self._left_out and type(raw) is float and -LARGEST <= raw <= LARGEST:
                continue
            if name in AXES or (value := _figure(raw)) is None:
                continue
            if not math.isfinite(value) and all(name != one.name for one in self.not_finite):
                logged = as_number(raw)
                self.not_finite.append(NotFinite(step, name, value if logged is None else logged))
            if name in self._left_out:
                continue
            if name in self.by_name or self._new(name):
                self.by_name[name].add(step, value)
        rows = len(self.steps)
        for curve in self.by_name.values():
            if curve.shares and len(curve.values) < rows:  # it has no value here
                curve.own()

    def _new(self, name: str) -> bool:
        if self._kept and not self._kept(name):
            self._left_out.add(name)
            return False
        first = len(self.steps) == 1
        self.by_name[name] = Curve(self.steps.steps if first else None)
        return True

    def cut(self, step: int) -> None:
        """Forgets every row at `step` or after it."""
        self.steps.cut(step)
        for curve in self.by_name.values():
            curve.cut(step)
        self.not_finite = [one for one in self.not_finite if one.step < step]
