"""Each rule on figures made for it; whole synthetic runs are in test_synthetic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rl_cli.runs.health import RULES, Finding, Limits, Room, View, inspect, view_of
from rl_cli.runs.progress import Progress
from tests.runs.series import healthy, with_series

LIMITS = Limits(batch_size=256, total_steps=40)
Rows = list[dict[str, Any]]


def seen(rows: Rows, validations: list[tuple[int, float]] | None = None, **given: Any) -> View:
    """What the rules see of a run with these rows."""
    progress = Progress()
    progress.feed(rows, [])
    for step, accuracy in validations or []:
        progress.validations.put(step, accuracy)
    return view_of(progress, given.pop("limits", LIMITS), **given)


def found(rows: Rows, **given: Any) -> dict[str, Finding]:
    return {finding.rule: finding for finding in inspect(seen(rows, **given))}


@pytest.mark.parametrize("seed", range(3))
def test_a_healthy_run_is_left_alone_at_every_step(seed: int) -> None:
    rows = healthy(60, seed)
    limits = replace(LIMITS, max_hours=1.0, target_accuracy=0.95, plateau_patience=4, total_steps=60)
    for step in range(len(rows) + 1):
        validations = [(k, 0.2 + 0.01 * k) for k in range(10, step, 10)]
        now = {"running_seconds": 60.0 * step, "quiet_seconds": 60.0}
        assert inspect(seen(rows[:step], validations, limits=limits, **now)) == []


def test_no_rows_at_all_are_no_finding() -> None:
    assert inspect(View(LIMITS)) == []


@pytest.mark.parametrize("value", ["NaN", "Infinity", float("nan")])
@pytest.mark.parametrize("name", ["loss", "grad_norm", "reward/mean"])
def test_ops_16_not_finite_stops_at_once_as_diverged_and_names_figure_and_step(name: str, value: Any) -> None:
    finding = found(with_series(healthy(12), name, [value]))["not_finite"]
    assert (finding.verdict, finding.at_once, finding.severity) == ("failed", True, "critical")
    assert finding.message.startswith(f"diverged: {name} is ")
    assert finding.message.endswith("at grpo step 12")


def test_not_finite_is_found_in_any_row_that_is_new() -> None:
    rows = healthy(40)
    rows[6] = {**rows[6], "loss": "NaN"}
    assert found(rows)["not_finite"].message == "diverged: loss is NaN at grpo step 7"


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


def test_no_signal_is_told_by_equal_rewards_where_groups_are_not_logged() -> None:
    rows = [{k: v for k, v in row.items() if k != "groups/with_signal"} for row in healthy(20)]
    assert found(with_series(rows, "reward/std", [0.0] * 5))["no_signal"].verdict == "failed"


def test_a_reward_that_is_gone_is_told_as_that_and_not_as_hard_tasks() -> None:
    rows = with_series(with_series(healthy(4), "groups/with_signal", [0.0] * 3), "reward/mean", [0.0] * 3)
    early = found(rows)["reward_collapse"]
    assert early.verdict is None
    assert "to 0.000 after step 1" in early.message
    assert "lower grpo.learning_rate" in early.advice

    rows = with_series(with_series(healthy(9), "groups/with_signal", [0.0] * 5), "reward/mean", [0.0] * 5)
    finding = found(rows)["no_signal"]
    assert finding.verdict == "failed"
    assert "to 0.000 after step 4" in finding.message
    assert "lower grpo.learning_rate" in finding.advice


@pytest.mark.parametrize("rewards", [[0.001] * 5 + [0.0] * 5, [0.0] * 10, [0.2] * 5 + [0.9] * 5])
def test_a_reward_that_was_rare_or_never_there_or_is_high_did_not_collapse(rewards: list[float]) -> None:
    rows = with_series(with_series(healthy(10), "groups/with_signal", [0.0] * 5), "reward/mean", rewards)
    findings = found(rows)
    assert "reward_collapse" not in findings
    assert "another difficulty" in findings["no_signal"].advice


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
    hour = replace(LIMITS, max_hours=1.0)
    assert found(rows, limits=hour, running_seconds=3601.0)["budget"].verdict == "stopped"
    late = found(rows, limits=replace(LIMITS, deadline=100.0), now=101.0)
    assert late["deadline"].verdict == "stopped"
    assert found(rows, dead="killed by SIGKILL")["dead"].verdict == "failed"


@pytest.mark.parametrize("budget", [{"max_dollars": 10.0}, {"max_gpu_hours": 4.0}])
def test_a_budget_of_money_warns_at_80_percent_and_stops_at_all_of_it(budget: dict[str, float]) -> None:
    limits = replace(LIMITS, gpus=2, gpu_hour=2.5, **budget)  # both are used up after two hours
    assert found(healthy(10), limits=limits, running_seconds=0.79 * 7200) == {}
    near = found(healthy(10), limits=limits, running_seconds=0.81 * 7200)["budget_near"]
    assert (near.verdict, "81%" in near.message) == (None, True)
    over = found(healthy(10), limits=limits, running_seconds=7200)["budget"]
    assert over.verdict == "stopped"
    assert f"budget.{next(iter(budget))}" in over.advice
    on_a_cpu = replace(limits, gpus=0)
    assert found(healthy(10), limits=on_a_cpu, running_seconds=1e6) == {}


def test_a_budget_of_the_day_stops_the_run_with_its_own_words() -> None:
    stop = found(healthy(10), refused="today's budget of $5.00 is used up")["budget"]
    assert (stop.verdict, stop.message) == ("stopped", "today's budget of $5.00 is used up")


def test_target_and_plateau_finish_only_when_asked_for() -> None:
    validations = [(10, 0.5), (20, 0.8), (30, 0.79), (40, 0.8)]
    assert found(healthy(40), validations=validations) == {}
    wanted = replace(LIMITS, target_accuracy=0.8)
    target = found(healthy(40), validations=validations, limits=wanted)["target"]
    assert target.verdict == "finished"
    assert "0.800" in target.message
    patient = replace(LIMITS, plateau_patience=2)
    assert found(healthy(40), validations=validations, limits=patient)["plateau"].verdict == "finished"
    assert found(healthy(40), validations=validations[:3], limits=patient) == {}


def test_what_stops_the_run_comes_first() -> None:
    rows = with_series(with_series(healthy(20), "completion/clipped", [0.8] * 5), "loss", ["NaN"])
    assert inspect(seen(rows))[0].rule == "not_finite"


ALERTS: dict[str, Rows] = {
    "reward_falling": with_series(healthy(40), "reward/mean", [0.7 - 0.03 * i for i in range(15)]),
    "entropy_collapse": with_series(healthy(40), "entropy", [0.01] * 10),
    "entropy_explosion": with_series(healthy(40), "entropy", [0.3 + 0.2 * i for i in range(10)]),
    "clipped": with_series(healthy(20), "completion/clipped", [0.8] * 5),
    "clip_saturated": with_series(healthy(20), "clip/share", [0.6] * 5),
    "kl_high": with_series(healthy(20), "kl", [3.0] * 5),
    "rollout_errors": with_series(healthy(20), "rollouts/errors", [60] * 3),
    "low_signal": with_series(healthy(20), "groups/with_signal", [0.05] * 5),
    "logprob_mismatch": with_series(healthy(20), "logprob/max_diff", [0.5] * 3),
    "gradient_spike": with_series(healthy(20), "grad_norm", [30.0]),
    "length_blowup": with_series(healthy(60), "completion/mean_tokens", [90.0] * 6),
    "length_collapse": with_series(healthy(60), "completion/mean_tokens", [2.0] * 6),
    "slow": with_series(healthy(60), "seconds/step", [5.0] * 54 + [40.0] * 6),
    "no_gain": with_series(healthy(30), "reward/mean", [0.22 + 0.01 * (i % 2) for i in range(30)]),
}


@pytest.mark.parametrize("rule", ALERTS)
def test_alerts_carry_evidence_and_advice_and_stop_nothing(rule: str) -> None:
    findings = found(ALERTS[rule])
    assert set(findings) == {rule}
    finding = findings[rule]
    assert finding.verdict is None
    assert finding.evidence["step"] == ALERTS[rule][-1]["step"]
    assert finding.advice


@pytest.mark.parametrize(
    ("name", "value"),
    [("completion/clipped", 1.0), ("kl", 9.0), ("rollouts/errors", 200), ("reward/mean", 0.1)],
)
def test_a_single_bad_step_is_no_alert_for_slow_rules(name: str, value: float) -> None:
    assert found(with_series(healthy(40), name, [value])) == {}


def test_nothing_is_said_about_learning_before_the_warm_up_is_over() -> None:
    rows = with_series(healthy(20), "kl", [3.0] * 20)
    assert found(rows[:10]) == {}
    assert set(found(rows[:11])) == {"kl_high"}


def test_falling_validation_is_an_alert_once_two_in_a_row_are_low() -> None:
    validations = [(10, 0.5), (20, 0.8), (30, 0.8), (40, 0.6)]
    assert found(healthy(40), validations=validations) == {}
    finding = found(healthy(50), validations=[*validations, (50, 0.5)])["validation_falling"]
    assert "while the reward rises" in finding.message
    assert finding.evidence == {"best": 0.8, "best_step": 30, "last": 0.55, "step": 50}


def test_a_checkpoint_that_does_not_come() -> None:
    limits = replace(LIMITS, checkpoint_every=10)
    assert found(healthy(20), limits=limits) == {}
    assert "there is none" in found(healthy(30), limits=limits)["checkpoint_overdue"].message


@pytest.mark.parametrize("what", ["disk", "memory"])
def test_disk_or_memory_that_is_low_or_going(what: str) -> None:
    gb = 1e9
    last = found([], **{what: [Room(0.0, 0.4 * gb, 100 * gb)]})[f"{what}_low"]
    assert last.severity == "critical"
    going = [Room(60.0 * i, (40 - i) * gb, 100 * gb) for i in range(10)]
    assert "31 minutes" in found([], **{what: going})[f"{what}_low"].message
    assert found([], **{what: [Room(60.0 * i, 40 * gb, 100 * gb) for i in range(10)]}) == {}
    assert found([], **{what: [Room(0.0, 0.4 * gb, 2 * gb)]}) == {}, "a small one is not always low"


def test_a_leap_of_the_reward_shows_samples() -> None:
    rows = with_series(healthy(40), "reward/mean", [0.3 + 0.01 * (i % 3) for i in range(29)] + [0.95] * 11)
    samples = [{"step": 39, "reward": 1.0, "completion": "pass " * 100, "prompt": "?"}]
    finding = found(rows, samples=samples)["reward_jump"]
    assert finding.evidence["samples"][0]["completion"].startswith("pass pass")


def test_repetition_is_read_from_samples() -> None:
    fine = [{"completion": " ".join(f"word{i}x{k}" for k in range(40)), "prompt": str(i)} for i in range(20)]
    loops = [{"completion": "and so on " * 20, "prompt": str(i)} for i in range(10)]
    same = [{"completion": "42", "prompt": str(i)} for i in range(20)]
    assert found(healthy(20), samples=fine) == {}
    assert "repeat themselves" in found(healthy(20), samples=fine + loops)["repetition"].message
    assert "the same text" in found(healthy(20), samples=same)["repetition"].message


def test_format_that_pays_without_being_right() -> None:
    rows = with_series(healthy(60), "reward/parts/correct", [0.6] * 40 + [0.2] * 20)
    rows = with_series(rows, "reward/parts/format", [0.5] * 40 + [1.0] * 20)
    finding = found(rows)["format_gaming"]
    assert "'format' pays" in finding.message


def test_every_rule_is_tried_here() -> None:
    named = {
        *("not_finite", "dead", "stalled", "no_signal", "out_of_time", "over_budget", "target_reached"),
        *("plateau", "validation_falling", "checkpoint_overdue", "disk_low", "memory_low", "reward_jump"),
        *("repetition", "format_gaming", "reward_plateau", "reward_collapse"),
    }
    assert {rule.__name__ for rule in RULES} == named | set(ALERTS)
