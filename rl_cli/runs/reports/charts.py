"""Curves as SVG text, without a script or a font of their own. Colours come from the page's CSS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rl_cli.runs.curves import LARGEST
from rl_cli.runs.reports.thinning import Point, thin

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 12, 26
MOST_POINTS = 4 * (WIDTH - LEFT - RIGHT)
"""Of one curve: four for each column of the picture."""
SMALLEST = 1e-280
"""Axes that span less have no ticks but their begin."""
LATE_STEP = 1000
"""Curves that begin before it are drawn from step 0."""
COLOURS = 6
"""Curves that can be told apart in one chart: classes c0, c1, ... of the page's style."""


@dataclass(frozen=True)
class Series:
    """One curve of a chart."""

    points: Sequence[Point]
    """(step, value), steps rising; a value that is not finite interrupts the curve and is marked."""
    name: str = ""
    """Whose it is, where there are several."""


def chart(
    title: str,
    points: Sequence[Point],
    *,
    dots: bool = False,
    levels: Sequence[tuple[str, float]] = (),
    start: tuple[str, float] | None = None,
    bounds: tuple[float, float] | None = None,
) -> str:
    """One curve as a <figure>.

    Args:
        title: What is shown, in plain text.
        points: (step, value), steps rising; a value that is not finite interrupts the curve and is marked.
        dots: Draw every point, with its value as a tooltip: for few points.
        levels: (label, value) of horizontal lines to compare with.
        start: (label, value) of what was measured at step 0 in another way than the curve.
        bounds: Lowest and highest value of the axis; default: what the values need.
    """
    return overlaid(title, [Series(points)], dots=dots, levels=levels, start=start, bounds=bounds)


def overlaid(
    title: str,
    series: Sequence[Series],
    *,
    dots: bool = False,
    levels: Sequence[tuple[str, float]] = (),
    start: tuple[str, float] | None = None,
    bounds: tuple[float, float] | None = None,
) -> str:
    """Several curves over the same steps as a <figure>; the arguments are those of `chart`."""
    drawn = [Series(thin(one.points, MOST_POINTS), one.name) for one in series]
    points = [point for one in drawn for point in one.points]
    known = [(x, y) for x, y in points if math.isfinite(y)]
    broken = [(x, y) for x, y in points if not math.isfinite(y)]
    head = f"<figcaption>{escape(title)}{_latest(series)}</figcaption>"
    if not known:
        what = f"no finite figures up to {LARGEST:g}" if broken else "no figures"
        return f'<figure>{head}<p class="none">{what}</p></figure>'
    extra = [y for _, y in levels] + ([start[1]] if start else [])
    low, high = bounds or bounds_of([*(y for _, y in known), *extra])
    frame = _Frame(*steps_of([x for x, _ in points], from_zero=start is not None), low, high)
    parts = frame.axes()
    for label, value in levels:
        y = frame.y(value)
        parts.append(f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{WIDTH - RIGHT}" y="{y - 4:.1f}" text-anchor="end">{escape(label)}</text>'
        )
    for i, one in enumerate(drawn):
        parts += frame.curve(one.points, f"c{i % COLOURS}", dots)
    if start:
        parts.append(frame.dot(0.0, start[1], "dot hollow", f"{start[0]}: {start[1]:.4g}"))
    parts += [frame.cross(x) for x, _ in broken]
    told = (f"{one.name} {_ends(one.points)}".strip() for one in drawn if one.points)
    label = escape(f"{title}: {'; '.join(told)}")
    svg = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    legend = '<p class="legend"><span class="bad">✕</span> not a finite number</p>' if broken else ""
    return f"<figure>{head}{svg}{legend}</figure>"


def ticks(low: float, high: float, count: int) -> list[float]:
    """At most about `count` + 1 round numbers between two bounds."""
    if high - low <= max(SMALLEST, max(abs(low), abs(high)) * 1e-12):
        return [low]
    rough = (high - low) / count
    scale = 10 ** math.floor(math.log10(rough))
    step = next(s * scale for s in (1, 2, 2.5, 5, 10) if s * scale >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    digits = max(12, 2 - math.floor(math.log10(step)))
    return [round(i * step, digits) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def bounds_of(values: Sequence[float]) -> tuple[float, float]:
    """Lowest and highest value of an axis that shows `values` with a margin; from 0 where that is near."""
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 0.1
    return (0.0 if 0 <= low < (high - low) else low - margin), high + margin


def steps_of(steps: Sequence[float], from_zero: bool = False) -> tuple[float, float]:
    """First and last step of an axis: it begins at step 0 unless most of a long one would be empty."""
    first, last = min(steps), max(steps)
    return (0.0 if from_zero or first <= max(LATE_STEP, last / 2) else first), last


@dataclass(frozen=True)
class _Frame:
    """Where steps and values lie in the picture."""

    first: float
    last: float
    low: float
    high: float

    def x(self, step: float) -> float:
        return LEFT + (step - self.first) / ((self.last - self.first) or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.low) / ((self.high - self.low) or 1) * (HEIGHT - TOP - BOTTOM)

    def axes(self) -> list[str]:
        parts = []
        for tick in ticks(self.low, self.high, 4):
            y = self.y(tick)
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(
                f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>'
            )
        for tick in ticks(self.first, self.last, 5):
            if tick == int(tick):
                anchor = "end" if self.x(tick) > WIDTH - 24 else "middle"
                parts.append(
                    f'<text class="tick" x="{self.x(tick):.1f}" y="{HEIGHT - 8}" '
                    f'text-anchor="{anchor}">{int(tick)}</text>'
                )
        return [*parts, f'<text class="tick" x="4" y="{HEIGHT - 8}">step</text>']

    def curve(self, points: Sequence[Point], colour: str, dots: bool) -> list[str]:
        parts = []
        for run in _unbroken(points):
            drawn = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in run)
            parts.append(f'<polyline class="curve {colour}" points="{drawn}"/>')
        finite = [(x, y) for x, y in points if math.isfinite(y)]
        if dots or len(finite) == 1:
            parts += [self.dot(x, y, f"dot {colour}", f"step {x:g}: {y:.4g}") for x, y in finite]
        return parts

    def dot(self, step: float, value: float, kind: str, told: str) -> str:
        place = f'cx="{self.x(step):.1f}" cy="{self.y(value):.1f}"'
        return f'<circle class="{kind}" {place} r="3"><title>{escape(told)}</title></circle>'

    def cross(self, step: float) -> str:
        place = f'x="{self.x(step):.1f}" y="{TOP + 8}" text-anchor="middle"'
        return f'<text class="broken" {place}>✕<title>step {step:g}: not a finite number</title></text>'


def _unbroken(points: Sequence[Point]) -> list[list[Point]]:
    runs: list[list[Point]] = [[]]
    for x, y in points:
        if math.isfinite(y):
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _ends(points: Sequence[Point]) -> str:
    return ", ".join(f"{y:.4g} at step {x:g}" for x, y in (points[0], points[-1]))


def _latest(series: Sequence[Series]) -> str:
    """The newest value, where there is one curve."""
    if len(series) != 1 or not series[0].points:
        return ""
    (step, value), bad = series[0].points[-1], not math.isfinite(series[0].points[-1][1])
    shown = f"{'NaN' if math.isnan(value) else value} at step {step:g}" if bad else f"{value:.4g}"
    return f'<span class="latest{" bad" if bad else ""}">{shown}</span>'
