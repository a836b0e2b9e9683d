"""Field reports about processes of runs: OPS-01, OPS-03, OPS-06, OPS-23. Soak makes 200 starts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.launch import stop_run
from rl_cli.runs.store import RunDir, create_run, list_runs
from rl_cli.runs.times import seconds_of
from tests.e2e import faults
from tests.e2e.cli import command, rl_cli
from tests.runs.kit import (
    end_all,
    identity,
    replay_config,
    start,
    steps,
    until,
    until_over,
    until_state,
    write_play,
)

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
    for _ in range(count // 4):
        for run in [start(runs, play) for _ in range(4)]:
            state = until_over(run)
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
        state = stop_run(run, "user", "enough")
        assert (state["state"], state["reason"]) == ("stopped", "user: enough")
        assert not [one for one in faults.left_of(runs) if "supervisor" not in one]
        until(lambda: not faults.left_of(runs))


EMPTIED = {
    "emptied": "exec env -i sleep {}",
    "emptied, parent gone": "env -i sleep {} &",
    "emptied, parent gone, in a session of its own": "setsid env -i sleep {} &",
    "emptied, twice": "env -i sh -c 'setsid sh -c \"sleep {} & sleep {}\" &' &",
}
"""What the trainer's shell starts, for so many seconds."""


@pytest.mark.parametrize(
    "end", [faults.stop, faults.stop_now, faults.kill_the_trainer, faults.kill_supervisor_and_stop_now]
)
@pytest.mark.parametrize("name", EMPTIED)
def test_ops_03_what_emptied_its_environment_is_ended_too(
    runs: Path, name: str, end: Callable[[RunDir], None]
) -> None:
    """In the trainer's session: always. In one of its own, left by its parent: while the supervisor lives."""
    seconds = f"4711.{time.monotonic_ns()}"
    run = create_run(replay_config(write_play(runs / "plays", GOES_ON)), runs)
    supervisor = faults.supervise_worker(
        run, faults.LEAVES_BEHIND, LEAVES_BEHIND=EMPTIED[name].format(seconds, seconds)
    )
    until(run.metrics)
    started = until(lambda: [one for one in faults.left_of(runs, seconds) if " sleep 4711" in one])
    lost = end is faults.kill_supervisor_and_stop_now and "setsid" in EMPTIED[name]
    with faults.bystander():
        end(run)
        supervisor.wait(60)
        until_over(run)
        if lost:
            assert set(started) <= set(faults.left_of(runs, seconds))
            for one in faults.left_of(runs, seconds):
                os.kill(int(one.split()[0]), signal.SIGKILL)
        until(lambda: not faults.left_of(runs, seconds), 10)


def test_what_a_trainer_leaves_behind_and_ends_is_reaped_while_the_run_goes_on(runs: Path) -> None:
    run = create_run(replay_config(write_play(runs / "plays", GOES_ON)), runs)
    leaves = "for i in 1 2 3 4 5 6 7 8; do (sleep 0.1 &); done"
    supervisor = faults.supervise_worker(run, faults.LEAVES_BEHIND, LEAVES_BEHIND=leaves)
    until(run.metrics)
    known = {supervisor.identity.pid, identity(run, "trainer").pid}
    until(lambda: {child.pid for child in psutil.Process(supervisor.identity.pid).children()} < known, 20)
    assert stop_run(run, "user", "enough")["state"] == "stopped"
    supervisor.wait(60)


needs_another_user = pytest.mark.skipif(
    not faults.may_be_denied(), reason="only root can start what it may not end afterwards"
)


def named(reason: str) -> ProcessIdentity:
    """The one process that a reason says could not be ended."""
    [pid] = re.findall(r"; still runs, and could not be ended: pid (\d+) \(", reason)
    return ProcessIdentity.of(int(pid))


@needs_another_user
@pytest.mark.parametrize("supervised", [True, False])
def test_ops_03_a_stop_says_what_it_could_not_end(runs: Path, supervised: bool) -> None:
    """A grandchild in a session of its own that became another user's: we are not allowed to signal it."""
    play = {"play": [{"child": 600}, {"setsid": 600}, *GOES_ON]}
    run = create_run(replay_config(write_play(runs / "plays", play)), runs)
    supervisor = faults.supervise_worker(run, faults.STARTS_ANOTHER_USERS, faults.MAY_NOT_KILL)
    until(run.metrics)
    with faults.bystander():
        if not supervised:
            faults.kill_supervisor(run)
        words = [] if supervised else faults.MAY_NOT_KILL
        stop = [*words, *command("runs", "stop", run.id, "--reason", "enough")]
        told = subprocess.run(stop, capture_output=True, text=True, timeout=120)
        assert told.returncode == 1, told.stderr
    supervisor.wait(60)
    state = run.state()
    left = named(state["reason"])
    assert (state["state"], left.alive()) == ("stopped", True)
    for shown in (
        told.stderr,
        rl_cli("runs", "show", run.id).out,
        rl_cli("runs", "show", run.id, "--json").out,
    ):
        assert f"could not be ended: pid {left.pid} (sleep)" in " ".join(shown.split())
    [found] = [one for one in faults.left_of(runs) if "supervisor" not in one]
    assert found.startswith(f"{left.pid} ")
    assert str(left.pid) in rl_cli("runs", "clean", run.id).out
    assert rl_cli("runs", "clean", run.id, "--yes").code == 0
    until(lambda: not faults.left_of(runs))


@needs_another_user
def test_ops_03_a_run_whose_trainer_cannot_be_ended_is_not_over(runs: Path) -> None:
    run = create_run(replay_config(write_play(runs / "plays", GOES_ON), {"stop_grace_seconds": 0.1}), runs)
    supervisor = faults.supervise_worker(run, faults.BECOMES_ANOTHER_USER, faults.MAY_NOT_KILL)
    until(lambda: "trainer" in run.state()["processes"])
    trainer = identity(run, "trainer")
    until(lambda: psutil.Process(trainer.pid).uids().real != os.getuid())
    stop_run(run, "user", "enough", wait=False)
    until(lambda: "could not be ended" in (run.state()["reason"] or ""))
    assert (run.state()["state"], named(run.state()["reason"]).pid) == ("stopping", trainer.pid)
    os.kill(trainer.pid, signal.SIGKILL)
    supervisor.wait(60)
    state = run.state()
    assert (state["state"], state["reason"]) == ("stopped", "user: enough")
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


def test_ops_23_the_end_of_a_process_is_seen_at_the_next_look_of_the_supervisor(runs: Path) -> None:
    """Which beats every two seconds: it dies while nobody looks, and at most one more heartbeat passes."""
    helpers = {"environment": [{"delay": 600}], "judge": [{"setsid": 600}, {"delay": 600}]}
    run = start(runs, {"play": [steps(2), {"stall": "deaf"}], "helpers": helpers})
    until_state(run, "running")
    until(lambda: run.state()["step"] == 2)
    os.kill(identity(run, "supervisor").pid, signal.SIGSTOP)
    faults.kill_the_environment(run)
    before, seen = run.state()["heartbeat"], set()
    os.kill(identity(run, "supervisor").pid, signal.SIGCONT)
    while (state := run.state())["state"] == "running":
        seen.add(state["heartbeat"])
    assert len(seen - {before}) <= 1
    state = until_over(run)
    assert (state["state"], state["reason"].startswith("environment was killed by SIGKILL")) == (
        "failed",
        True,
    )
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
