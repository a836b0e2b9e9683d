"""The health rules on a few synthetic runs; `make soak` tries thousands."""

from __future__ import annotations

import pytest

from rl_cli.runs.health import inspect
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
