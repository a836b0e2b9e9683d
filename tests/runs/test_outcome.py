from __future__ import annotations

import pytest

from rl_cli.runs.outcome import is_incomplete, what_is_lost
from rl_cli.runs.progress import Progress


@pytest.mark.parametrize(
    ("state", "incomplete"),
    [
        ({"state": "failed"}, True),
        ({"state": "lost"}, True),
        ({"state": "stopped", "rule": "budget", "step": 3, "total_steps": 20}, True),
        ({"state": "stopped", "rule": "deadline", "step": None, "total_steps": 20}, True),
        ({"state": "stopped", "rule": "budget", "step": 20, "total_steps": 20}, False),
        ({"state": "stopped", "rule": None, "step": 3, "total_steps": 20}, False),  # somebody's decision
        ({"state": "finished", "rule": "target", "step": 3, "total_steps": 20}, False),
        ({"state": "running", "step": 3, "total_steps": 20}, False),
    ],
)
def test_a_run_that_ran_out_of_its_budget_did_not_do_its_work(state: dict, incomplete: bool) -> None:
    assert is_incomplete(state) is incomplete


@pytest.mark.parametrize(
    ("rewards", "step", "lost"),
    [
        ([0.25, 0.0, 0.0, 0.0], 4, "from 0.250 at the start to 0.000 at the checkpoint of step 4"),
        ([0.25, 0.0, 0.0, 0.0], 1, "checkpoint of step 1"),  # the steps after it are its own
        ([0.25, 0.3, 0.28, 0.31, 0.0, 0.0], 3, None),
        ([0.25, 0.2, 0.22], 3, None),
        ([0.05, 0.0, 0.0], 3, None),  # too little to tell from chance
        ([], 3, None),
    ],
)
def test_a_checkpoint_of_a_destroyed_policy_is_told(
    rewards: list[float], step: int, lost: str | None
) -> None:
    progress = Progress()
    rows = [{"phase": "grpo", "step": i, "reward/mean": value} for i, value in enumerate(rewards, 1)]
    progress.feed(rows, [])
    found = what_is_lost(progress, step)
    assert found is None if lost is None else lost in (found or "")
