from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rl_cli.runs.health import RULES, Finding, Limits, View, inspect
from tests.runs.series import healthy, with_series

LIMITS = Limits(batch_size=256, total_steps=40)


def found(rows: list[dict[str, Any]], **view: Any) -> dict[str, Finding]:
    limits = view.pop("limits", LIMITS)
    return {finding.rule: finding for finding in inspect(View(limits=limits, rows=rows, **view))}


@pytest.mark.parametrize("seed", range(10))
def test_a_healthy_run_is_left_alone_at_every_step(seed: int) -> None:
    rows = healthy(60, seed)
    limits = replace(LIMITS, max_hours=1.0, target_accuracy=0.95, plateau_patience=4, total_steps=60)
    for step in range(len(rows) + 1):
        validations = [(k, 0.2 + 0.01 * k) for k in range(10, step, 10)]
        view = View(limits, rows[:step], validations, running_seconds=60.0 * step, quiet_seconds=60.0)
        assert inspect(view) == []


def test_no_rows_at_all_are_no_finding() -> None:
    assert inspect(View(LIMITS)) == []


@pytest.mark.parametrize("value", ["NaN", "Infinity", float("nan")])
@pytest.mark.parametrize("name", ["loss", "grad_norm", "reward/mean"])
def test_not_finite_stops_at_once_and_names_metric_and_step(name: str, value: Any) -> None:
    finding = found(with_series(healthy(12), name, [value]))["not_finite"]
    assert (finding.verdict, finding.at_once) == ("failed", True)
    assert name in finding.message
    assert "step 12" in finding.message


def test_not_finite_counts_in_sft_too_and_elsewhere_is_an_alert() -> None:
    assert found([{"phase": "sft", "step": 3, "loss": "NaN"}])["not_finite"].verdict == "failed"
    finding = found(with_series(healthy(12), "my/figure", ["NaN"]))["not_finite_metric"]
    assert finding.verdict is None


def test_no_signal_needs_all_batches_and_says_at_which_reward() -> None:
    rows = with_series(healthy(20), "groups/with_signal", [0.0] * 5)
    finding = found(with_series(rows, "reward/mean", [0.0] * 5))["no_signal"]
    assert finding.verdict == "failed"
    assert "0.000" in finding.message
    assert "no_signal" not in found(with_series(healthy(20), "groups/with_signal", [0.0, 0.1, 0.0, 0.0, 0.0]))
    assert "no_signal" not in found(with_series(healthy(4), "groups/with_signal", [0.0] * 4))


def test_no_signal_because_the_rollouts_fail_says_so() -> None:
    rows = with_series(healthy(20), "groups/with_signal", [0.0] * 5)
    finding = found(with_series(rows, "rollouts/errors", [256] * 5))["no_signal"]
    assert "256 rollouts a step failed" in finding.message


def test_no_signal_of_a_solved_task_finishes_the_run() -> None:
    rows = with_series(healthy(20), "groups/with_signal", [0.0] * 5)
    assert found(rows, validations=[(10, 0.7), (20, 1.0)])["solved"].verdict == "finished"


def test_time_rules() -> None:
    rows = healthy(10)
    assert found(rows, quiet_seconds=901.0)["stalled"].verdict == "failed"
    assert found([], quiet_seconds=901.0)["stalled"].at_once
    assert (
        found(rows, limits=replace(LIMITS, max_hours=1.0), running_seconds=3601.0)["budget"].verdict
        == "stopped"
    )
    late = found(rows, limits=replace(LIMITS, deadline=100.0), now=101.0)
    assert late["deadline"].verdict == "stopped"


@pytest.mark.parametrize("budget", [{"max_dollars": 10.0}, {"max_gpu_hours": 4.0}])
def test_a_budget_of_money_warns_at_80_percent_and_stops_at_all_of_it(budget: dict[str, float]) -> None:
    limits = replace(LIMITS, gpus=2, gpu_hour=2.5, **budget)  # both are used up after two hours
    assert found(healthy(10), limits=limits, running_seconds=0.79 * 7200) == {}
    near = found(healthy(10), limits=limits, running_seconds=0.81 * 7200)["budget_near"]
    assert (near.verdict, "81%" in near.message) == (None, True)
    over = found(healthy(10), limits=limits, running_seconds=7200)["budget"]
    assert over.verdict == "stopped"
    assert f"budget.{next(iter(budget))}" in over.action
    on_a_cpu = replace(limits, gpus=0)
    assert found(healthy(10), limits=on_a_cpu, running_seconds=1e6) == {}


def test_a_budget_of_the_day_stops_the_run_with_its_own_words() -> None:
    stop = found(healthy(10), refused="today's budget of $5.00 is used up")["budget"]
    assert (stop.verdict, stop.message) == ("stopped", "today's budget of $5.00 is used up")


def test_target_and_plateau_finish_only_when_asked_for() -> None:
    validations = [(10, 0.5), (20, 0.8), (30, 0.79), (40, 0.8)]
    assert found(healthy(40), validations=validations) == {}
    target = found(healthy(40), validations=validations, limits=replace(LIMITS, target_accuracy=0.8))[
        "target"
    ]
    assert target.verdict == "finished"
    assert "0.800" in target.message
    patient = replace(LIMITS, plateau_patience=2)
    assert found(healthy(40), validations=validations, limits=patient)["plateau"].verdict == "finished"
    assert found(healthy(40), validations=validations[:3], limits=patient) == {}


ALERTS: dict[str, list[dict[str, Any]]] = {
    "reward_falling": with_series(healthy(40), "reward/mean", [0.7 - 0.03 * i for i in range(15)]),
    "entropy_collapse": with_series(healthy(40), "entropy", [0.01] * 10),
    "clipped": with_series(healthy(20), "completion/clipped", [0.8] * 5),
    "kl_high": with_series(healthy(20), "kl", [3.0] * 5),
    "rollout_errors": with_series(healthy(20), "rollouts/errors", [60] * 3),
    "low_signal": with_series(healthy(20), "groups/with_signal", [0.05] * 5),
    "logprob_mismatch": with_series(healthy(20), "logprob/max_diff", [0.5] * 3),
    "gradient_spike": with_series(healthy(20), "grad_norm", [30.0]),
    "no_gain": with_series(healthy(30), "reward/mean", [0.22 + 0.01 * (i % 2) for i in range(30)]),
}


@pytest.mark.parametrize("rule", ALERTS)
def test_alerts_carry_figures_and_an_action_and_stop_nothing(rule: str) -> None:
    findings = found(ALERTS[rule])
    assert set(findings) == {rule}
    finding = findings[rule]
    assert finding.verdict is None
    assert finding.figures
    assert finding.action


def test_a_single_bad_step_is_no_alert_for_slow_rules() -> None:
    for name, value in (
        ("completion/clipped", 1.0),
        ("kl", 9.0),
        ("rollouts/errors", 200),
        ("reward/mean", 0.1),
    ):
        assert found(with_series(healthy(40), name, [value])) == {}


def test_falling_validation_is_an_alert() -> None:
    assert "validation_falling" in found(healthy(40), validations=[(10, 0.5), (20, 0.8), (30, 0.6)])


def test_what_stops_the_run_comes_first() -> None:
    rows = with_series(ALERTS["clipped"], "loss", ["NaN"])
    assert inspect(View(LIMITS, rows))[0].rule == "not_finite"


def test_every_rule_is_tried_here() -> None:
    named = {"not_finite", "stalled", "no_signal", "out_of_time", "over_budget", "target_reached", "plateau"}
    assert {rule.__name__ for rule in RULES} == named | set(ALERTS) | {"validation_falling"}
