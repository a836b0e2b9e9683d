"""Field reports about processes of runs: OPS-01, OPS-03, OPS-06, OPS-23. Soak makes 200 starts."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_cli.runs.launch import stop_run
from rl_cli.runs.store import list_runs
from rl_cli.runs.times import seconds_of
from tests.e2e import faults
from tests.runs.kit import end_all, identity, start, steps, until, until_over, until_state

GOES_ON = [steps(600, every=0.05)]


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    yield home
    end_all(home)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("count", [4, pytest.param(200, marks=pytest.mark.soak)])
def test_ops_01_starts_that_fail_leave_no_descriptor_and_no_process(runs: Path, count: int) -> None:
    play = {"play": GOES_ON, "helpers": {"environment": [{"log": "no such data set"}, {"exit": 1}]}}
    until_over(start(runs, play))
    before = descriptors()
    for _ in range(count):
        state = until_over(start(runs, play))
        assert state["state"] == "failed"
        assert state["reason"] == "environment ended with code 1: no such data set"
        assert "no such data set" in state["last_log_lines"]
    until(lambda: not faults.left_of(runs))
    assert descriptors() <= before
    assert {run.state()["state"] for run in list_runs(runs)} == {"failed"}


def test_ops_03_a_stop_ends_the_whole_tree_and_nothing_foreign(runs: Path) -> None:
    run = start(runs, [{"child": 600}, {"setsid": 600}, *GOES_ON])
    until(run.metrics)
    assert len(faults.left_of(runs)) == 4
    with faults.bystander():
        assert stop_run(run, "user", "enough")["state"] == "stopped"
        assert not [one for one in faults.left_of(runs) if "supervisor" not in one]
        until(lambda: not faults.left_of(runs))


def test_ops_06_a_trainer_that_writes_no_steps_is_told_with_its_last_step_and_the_age(runs: Path) -> None:
    run = start(runs, [steps(3), {"stall": True}], {"stall_seconds": 4})
    until_state(run, "running")
    until(lambda: run.state()["step"] == 3)
    early = run.state()["state"]
    quiet = time.time() - (seconds_of(run.metrics()[-1]["time"]) or 0)
    assert quiet >= 4 or early == "running"  # before the limit nothing else is right
    state = until_over(run)
    assert (state["state"], state["rule"], state["step"]) == ("failed", "stalled", 3)
    age = re.search(r"for (\d+) s", state["reason"])
    assert age
    assert int(age[1]) >= 4
    assert re.search(r"step 3\b", state["reason"]), state["reason"]


@pytest.mark.parametrize(("end", "how"), [(signal.SIGKILL, "killed by SIGKILL"), (None, "ended with code 3")])
def test_ops_23_a_trainer_that_waits_for_a_dead_process_is_failed_at_the_next_check(
    runs: Path, end: int | None, how: str
) -> None:
    helper = [{"log": "out of tasks"}, *([{"delay": 600}] if end else [{"delay": 1.5}, {"exit": 3}])]
    run = start(runs, {"play": [steps(2), {"stall": "deaf"}], "helpers": {"environment": helper}})
    until(lambda: "environment" in run.state()["processes"])
    if end:
        until_state(run, "running")
        os.kill(identity(run, "environment").pid, end)
    state = until_over(run, seconds=20)
    assert (state["state"], state["reason"].startswith("environment ")) == ("failed", True), state["reason"]
    assert how in state["reason"]
    until(lambda: not faults.left_of(runs))


def test_a_helper_is_watched_after_a_change_of_supervisors_too(runs: Path) -> None:
    run = start(runs, {"play": GOES_ON, "helpers": {"environment": [{"delay": 600}]}})
    until_state(run, "running")
    faults.kill_supervisor_and_attach(run)
    faults.kill_the_environment(run)
    state = until_over(run)
    assert (state["state"], "environment ended without" in state["reason"]) == ("failed", True)
    until(lambda: not faults.left_of(runs))


def test_two_distributed_trainers_on_one_host_get_ports_of_their_own(runs: Path) -> None:
    play = [{"listen": True}, steps(20, every=0.05)]
    both = [start(runs, play), start(runs, play)]
    ports = {
        run.state()["ports"]["master"] for run in both if until(lambda run=run: run.state().get("ports"))
    }
    assert [until_over(run)["state"] for run in both] == ["finished", "finished"]
    assert len(ports) == 2
