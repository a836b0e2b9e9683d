"""A resumed run speaks of what is now: faults that were left out, alerts of the attempt that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.checks.monitor import status_of
from rl_cli.runs.launch import start_run
from rl_cli.runs.progress import progress_of
from rl_cli.runs.resuming.resume import resume_run
from tests.runs.kit import replay_config, start, steps, until_over


@pytest.mark.parametrize(("file", "rule", "last"), [("nan", "not_finite", 25), ("stall", "stalled", 20)])
def test_a_demo_of_a_fault_ends_once_it_is_resumed(runs: Path, file: str, rule: str, last: int) -> None:
    run = start_run(replay_config(file, {"stall_seconds": 4}), runs)
    assert until_over(run)["state"] == "failed"
    resume_run(run)
    state = until_over(run)
    assert (state["state"], state["step"], state["total_steps"]) == ("finished", last, last)
    progress = progress_of(run)
    earlier = [alert["rule"] for alert in progress.alerts if alert.get("attempt") == 1]
    assert rule in earlier
    now = [alert["rule"] for alert in progress.current_alerts]
    assert rule not in now
    assert [alert["rule"] for alert in status_of(run)["alerts"]] == now
    assert rule not in [alert["rule"] for alert in DueChecks(run).take_alerts(progress.alerts)]
    assert [one["rule"] for one in state["alerts"] if one.get("attempt") == 1] == earlier


def test_a_replay_has_the_steps_of_its_file(runs: Path) -> None:
    run = start(runs, [steps(3), {"checkpoint": 2}, {"exit": 3}, steps(2, step_from=4)], grpo={"steps": 99})
    until_over(run)
    assert run.config().grpo.steps == 5
    with pytest.raises(BadUsage, match="a replay has the steps of its file"):
        resume_run(run, {"grpo.steps": 7})
    with pytest.raises(BadUsage) as caught:
        resume_run(run, {"grpo.group_size": 4})
    assert f"--config {run.path / 'run.yaml'}" in str(caught.value.hint)


def test_a_trainer_that_was_killed_is_told_with_its_step_not_its_figures(runs: Path) -> None:
    figures = "step 3/40: {'reward/mean': 0.65, 'loss': -0.04}"
    run = start(runs, [steps(3), {"log": figures}, {"kill": 9}])
    reason = until_over(run)["reason"]
    assert reason.startswith("the trainer was killed by SIGKILL")
    assert reason.endswith("after step 3")
    other = start(runs, [{"log": "cannot go on"}, steps(3), {"log": figures}, {"exit": 3}])
    assert until_over(other)["reason"] == "the trainer ended with code 3: cannot go on"
