from __future__ import annotations

import pytest

from rl_cli.runs.outcome import is_incomplete


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
