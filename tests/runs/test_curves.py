"""Figures over steps, whatever order the steps come in."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.runs.curves import Curve, Curves, as_number
from rl_cli.runs.progress import Progress

points = st.lists(st.tuples(st.integers(0, 40), st.floats(allow_nan=True, allow_infinity=True)))


@given(points)
def test_what_was_logged_last_counts(logged: list[tuple[int, float]]) -> None:
    curve, kept = Curve(), dict[int, float]()
    for step, value in logged:
        curve.add(step, value)
        kept = {s: v for s, v in kept.items() if s < step} | {step: value}
    assert list(curve.steps) == sorted(kept)
    assert all(curve.at(s) == v or math.isnan(v) for s, v in kept.items())
    finite = {s: v for s, v in kept.items() if math.isfinite(v)}
    best = curve.best()
    assert (best is None) == (not finite)
    if best:
        assert best[1] == max(finite.values())
        assert best[0] == min(s for s, v in finite.items() if v == best[1])


@pytest.mark.parametrize("text", ["NaN", "nan", "NAN", "inf", "-inf", "Infinity", "-INFINITY", "+Inf"])
def test_a_figure_that_is_not_finite_is_one_however_it_is_written(text: str) -> None:
    value = as_number(text)
    assert value is not None
    assert not math.isfinite(value)
    assert (value < 0) == text.startswith("-")


def test_a_text_is_no_figure() -> None:
    assert [as_number(text) for text in ("", "infinite", "1.5", "none", "nan ")] == [None] * 5


def test_a_figure_that_is_not_finite_is_remembered_until_its_step_is_done_again() -> None:
    curves = Curves()
    for step in range(1, 8):
        curves.add(step, {"loss": "NaN" if step == 7 else 0.5, "time": "12", "phase": "grpo", "step": step})
    assert [(one.step, one.name) for one in curves.not_finite] == [(7, "loss")]
    curves.add(6, {"loss": 0.4})
    assert curves.not_finite == []
    assert list(curves["loss"].steps) == [1, 2, 3, 4, 5, 6]
    assert len(curves["reward/mean"]) == 0
    assert curves["loss"].last(2) == [0.5, 0.4]


def test_figures_of_every_step_share_its_steps_and_those_with_gaps_have_their_own():
    chance = random.Random(0)
    curves, plain = Curves(), {name: Curve() for name in ("always", "first", "later", "sometimes")}
    step = 0
    for i in range(2000):
        step = step - chance.randrange(1, 9) if i and chance.random() < 0.02 else step + 1
        row = {"always": chance.random(), "sometimes": chance.random(), "later": 1.0, "first": 2.0}
        present = [
            name
            for name in row
            if name == "always"
            or (name == "sometimes" and chance.random() < 0.5)
            or (name == "later" and i > 100)
            or (name == "first" and i < 50)
        ]
        curves.add(step, {name: row[name] for name in present})
        for name, curve in plain.items():
            curve.cut(step)
            if name in present:
                curve.add(step, row[name])
    assert curves["always"].steps is curves.steps.steps
    for name, curve in plain.items():
        assert curves[name].points() == curve.points()
        assert curves[name].best() == curve.best()
    curves["always"].put(-5, 9.0)
    assert curves["always"].best() == (-5, 9.0)
    assert curves.steps.steps[0] != -5


def test_curves_that_nobody_asks_for_are_left_out_but_not_what_is_not_finite_in_them() -> None:
    progress = Progress(judged_only=True)
    rows = [{"step": i, "reward/mean": 0.1 * i, "odd": 1.0, "rollouts/errors/slow": 1.0} for i in range(3)]
    progress.feed([{"phase": "grpo", **row} for row in [*rows, {"step": 3, "odd": "NaN"}]], [])
    assert set(progress.grpo.by_name) == {"reward/mean", "rollouts/errors/slow"}
    assert [(one.step, one.name) for one in progress.grpo.not_finite] == [(3, "odd")]
    assert progress.step == 3
