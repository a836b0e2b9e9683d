"""Curves as SVG text, without a script or a font of their own. Colours come from the page's CSS variables."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 12, 26
MOST_POINTS = 600

Point = tuple[float, float]


def chart(
    title: str,
    points: Sequence[Point],
    *,
    dots: bool = False,
    levels: Sequence[tuple[str, float]] = (),
    bounds: tuple[float, float] | None = None,
) -> str:
    """One curve as a <figure>.

    Args:
        title: What is shown, in plain text.
        points: (step, value), steps rising; a value that is not finite interrupts the curve and is marked.
        dots: Draw every point, with its value as a tooltip: for few points.
        levels: (label, value) of horizontal lines to compare with.
        bounds: Lowest and highest value of the axis; default: what the values need.
    """
    known = [(x, y) for x, y in points if math.isfinite(y)]
    broken = len(known) < len(points)
    if not known:
        what = "no finite figures" if broken else "no figures"
        return _figure(title, points, f'<p class="none">{what}</p>')
    low, high = bounds or _bounds([*(y for _, y in known), *(y for _, y in levels)])
    first, last = points[0][0], points[-1][0]

    def x_of(x: float) -> float:
        return LEFT + (x - first) / ((last - first) or 1) * (WIDTH - LEFT - RIGHT)

    def y_of(y: float) -> float:
        return HEIGHT - BOTTOM - (y - low) / ((high - low) or 1) * (HEIGHT - TOP - BOTTOM)

    parts = []
    for tick in ticks(low, high, 4):
        y = y_of(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in ticks(first, last, 5):
        if tick == int(tick):
            x = x_of(tick)
            parts.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{tick:g}</text>'
            )
    parts.append(f'<text class="tick" x="4" y="{HEIGHT - 8}">step</text>')
    for label, value in levels:
        y = y_of(value)
        parts.append(f'<line class="level" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{WIDTH - RIGHT}" y="{y - 4:.1f}" text-anchor="end">{escape(label)}</text>'
        )
    parts += [_line([(x_of(x), y_of(y)) for x, y in run]) for run in _unbroken(thin(points))]
    if dots or len(known) == 1:
        parts += [
            f'<circle class="dot" cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="3">'
            f"<title>step {x:g}: {y:.4g}</title></circle>"
            for x, y in known
        ]
    parts += [
        f'<text class="broken" x="{x_of(x):.1f}" y="{TOP + 8}" text-anchor="middle">✕'
        f"<title>step {x:g}: not a finite number</title></text>"
        for x, y in points
        if not math.isfinite(y)
    ]
    label = f"{title}: " + ", ".join(f"{y:.4g} at step {x:g}" for x, y in (points[0], points[-1]))
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )
    legend = '<p class="legend"><span class="bad">✕</span> not a finite number</p>' if broken else ""
    return _figure(title, points, svg + legend)


def ticks(low: float, high: float, count: int) -> list[float]:
    """At most about `count` + 1 round numbers between two bounds."""
    if high <= low:
        return [low]
    rough = (high - low) / count
    scale = 10 ** math.floor(math.log10(rough))
    step = next(s * scale for s in (1, 2, 2.5, 5, 10) if s * scale >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def thin(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most about `most` points, keeping the lowest and the highest of each stretch, and every gap."""
    if len(points) <= most:
        return list(points)
    size = math.ceil(len(points) / (most / 2))
    kept: list[Point] = []
    for start in range(0, len(points), size):
        stretch = points[start : start + size]
        broken = [p for p in stretch if not math.isfinite(p[1])]
        whole = [p for p in stretch if math.isfinite(p[1])]
        extremes = {min(whole, key=lambda p: p[1]), max(whole, key=lambda p: p[1])} if whole else set()
        kept += sorted([*extremes, *broken], key=lambda p: p[0])
    return kept


def _bounds(values: list[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or abs(high) * 0.1 or 0.1
    return (0.0 if 0 <= low < (high - low) else low - margin), high + margin


def _unbroken(points: Sequence[Point]) -> list[list[Point]]:
    runs: list[list[Point]] = [[]]
    for x, y in points:
        if math.isfinite(y):
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _line(points: list[Point]) -> str:
    return f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def _figure(title: str, points: Sequence[Point], body: str) -> str:
    latest = ""
    if points:
        (step, value), bad = points[-1], not math.isfinite(points[-1][1])
        shown = f"{'NaN' if math.isnan(value) else value} at step {step:g}" if bad else f"{value:.4g}"
        latest = f'<span class="latest{" bad" if bad else ""}">{shown}</span>'
    return f"<figure><figcaption>{escape(title)}{latest}</figcaption>{body}</figure>"
