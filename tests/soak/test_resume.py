"""A training that is killed three times, under its supervisor, equals one that was left alone; printed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from rl_cli.config.edit import resolve
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.launch import start_run
from rl_cli.runs.resuming.resume import resume_run
from rl_cli.runs.run_dir import RunDir
from tests.runs.kit import identity, until, until_over
from tests.training.test_resume import assert_same

pytestmark = [pytest.mark.soak, pytest.mark.train]
STEPS, EVERY = 20, 5
CHANGES = {
    "grpo.steps": STEPS,
    "grpo.checkpoint_every": EVERY,
    "evaluation.every": EVERY,
    "tracking.wandb": "off",
}


def begin(environment: str, home: Path) -> RunDir:
    return start_run(resolve(environment, "cpu-demo", CHANGES), home)


def kill_after(run: RunDir, step: int, *processes: str) -> None:
    """Kills processes of the run once it has written the row of a step."""

    def reached() -> bool:
        row = run.last_metrics()
        return row.get("phase") == "grpo" and row["step"] >= step

    until(reached, 900)
    for one in [identity(run, name) for name in processes]:
        os.kill(one.pid, signal.SIGKILL)
        until(lambda one=one: ProcessIdentity.from_dict(one.to_dict()).alive() is False, 30)


@pytest.mark.parametrize("environment", ["gsm8k-mini", "tool-math"])
def test_three_kills_change_nothing(environment: str, home: Path):
    started = time.monotonic()
    undisturbed = begin(environment, home)
    assert until_over(undisturbed, 1800)["state"] == "finished"
    alone = time.monotonic() - started
    run, from_steps = begin(environment, home), []
    for step, processes in ((2, ["trainer"]), (12, ["supervisor", "trainer"]), (17, ["trainer"])):
        kill_after(run, step, *processes)
        until_over(run, 60)
        from_steps.append(resume_run(run).step)
    state = until_over(run, 1800)
    rewards = [row["reward/mean"] for row in run.metrics() if row["phase"] == "grpo"]
    took = time.monotonic() - started - alone
    print(f"\n{environment}: undisturbed {alone:.0f} s, with three kills {took:.0f} s")
    print(f"went on from {from_steps}; reward {rewards[0]:.3f} -> {rewards[-1]:.3f}; {state['eval']}")
    assert state["state"] == "finished"
    assert [row["step"] for row in run.metrics() if row["phase"] == "grpo"] == list(range(1, STEPS + 1))
    assert len([e for e in run.events() if e["kind"] == "resumed"]) == 3
    assert from_steps[0] == 0  # killed before the first checkpoint
    assert from_steps[1] >= 10
    assert from_steps[2] >= 15
    assert_same(run, undisturbed)
