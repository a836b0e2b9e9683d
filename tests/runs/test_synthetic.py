"""The health rules on a few synthetic runs; `make soak` tries thousands."""

from __future__ import annotations

import random

import pytest

from rl_cli.runs.health import Limits, inspect, view_of
from rl_cli.runs.progress import Progress
from rl_cli.runs.synthetic.failures import FAILURES, HARD, checks, failing, healthy
from tests.runs.synthetic_bench import alarms, delay


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_is_found(kind: str) -> None:
    delays = [delay(kind, seed) for seed in range(3)]
    found = [d for d in delays if d is not None]
    assert len(found) >= (3 if kind in HARD else 2), delays
    if kind in HARD:
        assert max(found) <= 3


def test_healthy_runs_are_left_alone() -> None:
    assert sum(bool(alarms(seed)) for seed in range(10)) == 0


def test_only_the_hard_failures_stop_a_run() -> None:
    for kind in FAILURES:
        verdicts = {f.rule for _, view in checks(failing(kind, 1)) for f in inspect(view) if f.verdict}
        assert verdicts == ({kind} if kind in HARD else set()), kind


def test_the_same_seed_gives_the_same_run() -> None:
    assert healthy(5) == healthy(5)
    assert failing("reward_collapse", 5) == failing("reward_collapse", 5)
    assert healthy(5).rows != healthy(6).rows


@pytest.mark.parametrize(("before", "after", "noise"), [(0.6, 0.22, 0.07), (0.43, 0.04, 0.07)])
def test_a_fall_that_is_held_is_found_though_its_steps_scatter_much(
    before: float, after: float, noise: float
) -> None:
    found = 0
    for seed in range(20):
        chance, progress, heard = random.Random(seed), Progress(75), set[str]()
        for step in range(1, 76):
            level = before if step <= 40 else after
            progress.feed([{"phase": "grpo", "step": step, "reward/mean": chance.gauss(level, noise)}], [])
            heard |= {one.rule for one in inspect(view_of(progress, Limits(total_steps=75)))}
        found += "reward_falling" in heard
    assert found >= 19


def test_few_groups_with_signal_are_told_unless_the_tasks_are_solved() -> None:
    for reward, told in ((0.3, True), (0.95, False)):
        progress = Progress(500)
        rows = [
            {"phase": "grpo", "step": step, "reward/mean": reward, "groups/with_signal": 0.04}
            for step in range(1, 41)
        ]
        progress.feed(rows, [])
        heard = {one.rule for one in inspect(view_of(progress, Limits(total_steps=500)))}
        assert ("low_signal" in heard) == told
