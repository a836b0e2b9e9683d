"""Curves of runs as text, in the width of the terminal."""

from __future__ import annotations

import math
import os
import shutil
import sys
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from rl_cli.cli.event_lines import clip
from rl_cli.core.printable import printable
from rl_cli.runs.curves import LARGEST, Curve
from rl_cli.runs.progress import Progress, progress_of
from rl_cli.runs.reports.charts import bounds_of, steps_of, ticks
from rl_cli.runs.reports.sparkline import BROKEN
from rl_cli.runs.reports.thinning import thinned

HEIGHT = 10
WIDE = 100
"""Columns from which on two plots stand side by side."""
SHOWN = (
    ("reward, mean", "reward/mean"),
    ("validation accuracy", None),
    ("loss", "loss"),
    ("entropy, nats per token", "entropy"),
)
COLOURS = (33, 208, 36, 168, 227, 141)
"""Of the 256 of a terminal: apart also for the colour-blind, on black and on white."""
LETTERS = "ABCDEF"
MEETING = "*"
"""Stands where several runs meet."""
MOST_RUNS = len(COLOURS)


def plots_wanted(asked: bool | None) -> bool:
    """Whether to draw: as was asked, else on a terminal only."""
    return sys.stdout.isatty() if asked is None else asked


def print_plots(runs: Sequence[Any]) -> None:
    """Draws what the runs have of reward, validation accuracy, loss and entropy; several runs overlaid.

    Args:
        runs: RunDirs, at most six.
    """
    from rl_cli.cli.output import say

    encoding = sys.stdout.encoding or "ascii"
    if not _has(encoding, f"─┤⣿{BROKEN}"):
        say(f"no curves: the encoding of this output, {encoding}, has no characters for them", error=True)
        return
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    columns = shutil.get_terminal_size().columns
    side_by_side = columns >= WIDE
    width = (columns - 2) // 2 if side_by_side else columns
    progresses = [progress_of(run) for run in runs]
    plots = []
    for title, name in SHOWN:
        curves = [_curve(progress, name) for progress in progresses]
        if any(len(curve) > 1 for curve in curves):
            plots.append(_plot(title, name, curves, width, colour))
    if plots and len(runs) > 1:
        for i, run in enumerate(runs):
            mark = f"\x1b[38;5;{COLOURS[i]}m━━\x1b[0m" if colour else LETTERS[i]
            print(f"{mark} {clip(printable(run.id), columns - 4)}")
        if not colour:
            print(f"{MEETING} where several meet")
    while plots:
        row, plots = plots[: 2 if side_by_side else 1], plots[2 if side_by_side else 1 :]
        print()
        for lines in zip_longest(*row, fillvalue=" " * width):
            print("  ".join(lines))
    if not any(len(_curve(progress, name)) > 1 for progress in progresses for _, name in SHOWN):
        say("no curves yet")


def _has(encoding: str, characters: str) -> bool:
    try:
        characters.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _curve(progress: Progress, name: str | None) -> Curve:
    if name is None:
        return progress.validations
    curve = progress.grpo[name]
    return progress.sft[name] if name == "loss" and not len(curve) else curve


def _plot(title: str, name: str | None, curves: Sequence[Curve], width: int, colour: bool) -> list[str]:
    """Lines of exactly `width` columns."""
    import plotext

    points = [thinned(curve, 8 * width) for curve in curves]
    finite = [(x, y) for some in points for x, y in some if math.isfinite(y)]
    told = [clip(line, width).ljust(width) for line in _broken_in_words(curves)]
    if not finite:
        return [clip(f"{title}: no finite figures up to {LARGEST:g}", width).ljust(width), *told]
    least = [0.0] if name is None else []  # a share: what is little should look little
    low, high = bounds_of([*(y for _, y in finite), *least])
    first, last = steps_of([x for some in points for x, _ in some])
    figure = plotext.figure
    letters = len(curves) > 1 and not colour

    def drawn(which: Sequence[int]) -> list[str]:
        figure.clear()
        figure.theme("colorless")
        figure.plot_size(width, HEIGHT)
        figure.axes(False, axis="x", side="upper")
        figure.axes(False, axis="y", side="right")
        figure.title(clip(_with_newest(title, curves), width - 2))
        for axis, (start, end), marks in (
            ("x", (first, last), ticks(first, last, max(2, width // 14))),
            ("y", (low, high), ticks(low, high, 3)),
        ):
            figure.ruler(axis).lim(start, end)
            figure.ruler(axis).ticks(marks, [f"{mark:g}" for mark in marks])
        for i in which:
            pixel = plotext.pixel(COLOURS[i])
            marker = LETTERS[i] if letters else "braille"
            for part in _unbroken(points[i]):
                signal = figure.signal(*zip(*part, strict=True), marker=plotext.marker(marker, pixel))
                if marker == "braille":
                    signal.lines()
                figure.draw(signal)
            if marked := _broken_columns(curves[i], first, last, width):
                top = [high] * len(marked)
                figure.draw(figure.signal(marked, top, marker=plotext.marker(BROKEN, pixel)))
        return str(figure.build().string(colorless=not colour)).rstrip("\n").split("\n")

    there = [i for i, some in enumerate(points) if some]
    drawing = _laid_over([drawn([i]) for i in there]) if letters else drawn(there)
    return [*drawing, *told]


def _laid_over(drawings: Sequence[Sequence[str]]) -> list[str]:
    """Drawings that differ in their letters only, as one: where letters meet stands a star."""
    return ["".join(map(_meeting, zip(*lines, strict=True))) for lines in zip(*drawings, strict=True)]


def _meeting(characters: tuple[str, ...]) -> str:
    if len(set(characters)) == 1 and (len(characters) == 1 or characters[0] not in LETTERS):
        return characters[0]
    if BROKEN in characters:
        return BROKEN
    found = {character for character in characters if character in LETTERS}
    return MEETING if len(found) > 1 else found.pop() if found else characters[0]


def _with_newest(title: str, curves: Sequence[Curve]) -> str:
    if len(curves) > 1:
        return title
    step, value = curves[0].steps[-1], curves[0].values[-1]
    return f"{title}: {value:.4g} at step {step}"


def _broken(curve: Curve) -> list[int]:
    """Steps at which it is not finite."""
    return [step for step, value in zip(curve.steps, curve.values, strict=True) if not math.isfinite(value)]


def _broken_columns(curve: Curve, first: float, last: float, width: int) -> list[int]:
    """The same, one for each column of the plot."""
    scale = width / ((last - first) or 1)
    return list({round((step - first) * scale): step for step in _broken(curve)}.values())


def _broken_in_words(curves: Sequence[Curve]) -> list[str]:
    """At most one line."""
    broken = sorted(step for curve in curves for step in _broken(curve))
    if not broken:
        return []
    of = sum(len(curve) for curve in curves)
    where = f"at step {broken[0]}" if len(broken) == 1 else f"the first at step {broken[0]}"
    return [f"{BROKEN} {len(broken)} of {of} values not finite or beyond {LARGEST:g}, {where}"]


def _unbroken(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if math.isfinite(y):
            runs[-1].append((x, y))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
