"""Figures that a program may log, however large or small: everything that shows or judges them survives."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.cli.run_plots import print_plots
from rl_cli.core.files import append_jsonl
from rl_cli.runs.checks.digest import digest
from rl_cli.runs.curves import LARGEST, Curves, as_figure, as_step, mean_of
from rl_cli.runs.health import inspect
from rl_cli.runs.metric_names import common_row
from rl_cli.runs.outcome import text_summary
from rl_cli.runs.progress import progress_of
from rl_cli.runs.reports.charts import chart, ticks
from rl_cli.runs.reports.compare_page import write_comparison
from rl_cli.runs.reports.report import results, write_report
from rl_cli.runs.reports.sparkline import sparkline
from rl_cli.runs.reports.thinning import thinned
from rl_cli.runs.rules.stops import not_finite
from rl_cli.runs.rules.view import Limits, View
from rl_cli.runs.store import RunDir, create_run
from tests.runs.kit import replay_config
from tests.runs.series import healthy

EXTREMES = (1e308, -1e308, 10**400, -(10**400), 5e-324, 1e-200, 1e100, -1e100, 2**63, "Infinity", "NaN", 0)


def extreme_run(home: Path, values: tuple[Any, ...]) -> RunDir:
    """A healthy run whose last rows hold such values in every figure."""
    run = create_run(replay_config("demo"), home)
    rows = healthy(60)
    for i, row in enumerate(rows[30:]):
        for name in row:
            if name not in ("time", "phase", "step"):
                row[name] = values[i % len(values)]
        row["accuracy/validation"] = values[i % len(values)]
    for row in rows:
        append_jsonl(run.path / "metrics.jsonl", row)
    for step in (10**27, -(10**27), 2**63, True):
        append_jsonl(run.path / "metrics.jsonl", {"phase": "grpo", "step": step, "loss": 1.0})
        run.append_event("checkpoint", step=step)
        run.append_event("evaluation", which="validation", step=step, accuracy=0.5)
        run.append_event("resumed", step=step)
    for value in values:
        run.append_event("evaluation", which="final", split="test", n=400, accuracy=value, step=60)
        run.append_sample(step=60, task_id="t", prompt="p", completion="c", reward=value)
    return run


@pytest.mark.parametrize("values", [EXTREMES, (1e308, -1e308), (1e100, -1e100), (5e-324, 0.0)])
def test_a_run_with_figures_of_any_size_is_shown_and_judged(home: Path, values: tuple[Any, ...]) -> None:
    run = extreme_run(home, values)
    progress = progress_of(run)
    assert progress.step == 60
    assert len(progress.grpo) == 60
    assert progress.checkpoint is None
    assert "<svg" in write_report(run).read_text()
    write_comparison([run, run], home / "both.html")
    results(run)
    text_summary(run)
    print_plots([run])
    digest(run, "due", [])
    view = View(Limits(total_steps=100), progress.grpo, validations=progress.validations)
    assert all(isinstance(finding.message, str) for finding in inspect(view))


@given(st.lists(st.floats(), min_size=1, max_size=60))
def test_curves_of_any_floats_are_drawn_judged_and_averaged(values: list[float]) -> None:
    curves = Curves()
    for step, value in enumerate(values):
        curves.add(step, {"reward/mean": value, "loss": -value, "entropy": value, "grad_norm": value})
    curve = curves["reward/mean"]
    assert len(curve) == len(values)
    assert len(sparkline(curve, 20)) == min(20, len(values))
    shown = chart("x", thinned(curve, 100))
    assert "nan," not in shown
    assert ",nan" not in shown
    list(inspect(View(Limits(total_steps=60), curves, validations=curve)))
    mean_of(values)
    common_row({f"rewards/{n}/mean": value for n, value in enumerate(values)})


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_ticks_of_any_bounds(low: float, high: float) -> None:
    if abs(low) <= LARGEST and abs(high) <= LARGEST:
        assert 1 <= len(ticks(low, high, 4)) <= 8


def test_a_figure_that_is_too_large_is_told_as_it_is() -> None:
    curves = Curves()
    curves.add(1, {"loss": 1e308, "kl": "Infinity"})
    said = [finding.message for finding in not_finite(View(Limits(), curves))]
    assert "diverged: loss is 1e+308, too large to go on with, at grpo step 1" in said
    assert "diverged: kl is infinite at grpo step 1" in said


def test_what_no_float_holds_is_infinite_and_a_step_beyond_any_run_is_none() -> None:
    assert as_figure(10**400) == math.inf
    assert as_figure(-1e308) == -math.inf
    assert as_figure(1e38) == 1e38
    assert as_step(10**27) is None
    assert as_step(True) is None
    assert as_step(7) == 7
