"""The fault matrix: whatever happens, a run ends in the right state, for the right reason, nothing left."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import RlCliError
from rl_cli.runs.launch import start_run, start_supervisor, stop_run
from rl_cli.runs.outcome import seconds_taken
from rl_cli.runs.state_file import is_over
from rl_cli.runs.store import RunDir, create_run, list_runs
from rl_cli.runs.times import seconds_of
from tests.e2e import faults
from tests.runs.kit import (
    end_all,
    replay_config,
    start,
    steps,
    until,
    until_over,
    until_state,
    write_play,
)
from tests.tracking.kit import use
from tests.wandb_server.server import WandbServer

GOES_ON = [steps(600, every=0.05)]
"""For longer than any test waits."""
A_MOMENT = [steps(60, every=0.05)]
GAINS = [steps(60, every=0.05, **{"reward/mean": [0.2, 0.9]})]
FAMILY = [{"child": 600}, {"setsid": 600}, *GOES_ON]
PARENT = [{"child": 600}, *GOES_ON]
"""With nobody in it who has to be waited for until he is killed."""
DEAF = [steps(2), {"child": 600}, {"setsid": 600}, {"stall": "deaf"}]
SAVES = {"play": GOES_ON, "on_stop": [{"checkpoint": 3}]}
HANGS = [{"delay": 600}]
LOADS = [{"delay": 600}, {"ready": True}]


@dataclass
class Row:
    play: Any
    fault: Callable[[RunDir], None]
    state: str
    reason: str
    at: str = "running"
    """The state in which the fault happens."""
    health: dict[str, Any] = field(default_factory=dict)
    wandb: str = "off"
    clock: bool = False
    """Whether the fault sets the wall clock; no hour passes in truth."""


K = faults
ROWS = {
    # The supervisor is killed.
    "trainer finishes alone": Row(A_MOMENT, K.kill_supervisor, "finished", "played to its end"),
    "trainer fails alone": Row(
        [*A_MOMENT, {"fail": "no data left"}], K.kill_supervisor, "failed", "no data left"
    ),
    "trainer vanishes alone": Row([*A_MOMENT, {"exit": 3}], K.kill_supervisor, "lost", "left no exit file"),
    "everybody killed": Row(FAMILY, K.kill_both, "lost", "so is the trainer, which left no exit file"),
    "everybody killed, with W&B": Row(GOES_ON, K.kill_both, "lost", "left no exit file", wandb="offline"),
    "everybody killed, uploading": Row(GOES_ON, K.kill_both, "lost", "left no exit file", wandb="live"),
    "everybody killed, stopping": Row(
        DEAF, K.kill_both_while_stopping, "stopped", "user: enough", health={"stop_grace_seconds": 600}
    ),
    "lost and stopped": Row(SAVES, K.kill_supervisor_and_stop, "stopped", "user: enough"),
    "lost and stopped, loading": Row(
        LOADS, K.kill_supervisor_and_stop, "stopped", "user: enough", at="starting"
    ),
    "lost and stopped, deaf": Row(
        DEAF, K.kill_supervisor_and_stop, "stopped", "user: enough", health={"stop_grace_seconds": 0.5}
    ),
    "taken over": Row(A_MOMENT, K.kill_supervisor_and_attach, "finished", "played to its end"),
    "taken over, loading": Row(
        [{"delay": 4}, {"ready": True}, steps(3)],
        K.kill_supervisor_and_attach,
        "finished",
        "played to its end",
        at="starting",
    ),
    "lost and stopped, uploading": Row(
        GOES_ON, K.kill_supervisor_and_stop, "stopped", "user: enough", wandb="live"
    ),
    "taken over twice": Row(
        [steps(120, every=0.05)], K.kill_supervisors_twice, "finished", "played to its end"
    ),
    "taken over and stopped": Row([{"setsid": 600}, *GOES_ON], K.attach_and_stop, "stopped", "user: enough"),
    "taken over and killed": Row(
        PARENT, K.attach_and_kill_the_trainer, "failed", "the trainer ended without saying why"
    ),
    "told to end": Row(FAMILY, K.tell_the_supervisor_to_end, "stopped", "the supervisor got SIGTERM"),
    "a second supervisor": Row(GOES_ON, K.second_supervisor, "stopped", "user: enough"),
    # The trainer and what it started.
    "trainer killed": Row(FAMILY, lambda run: K.kill(run, "trainer", 9), "failed", "because memory ran out"),
    "trainer segfault": Row(FAMILY, lambda run: K.kill(run, "trainer", 11), "failed", "killed by SIGSEGV"),
    "trainer terminated": Row(PARENT, lambda run: K.kill(run, "trainer", 15), "failed", "killed by SIGTERM"),
    "finished with children left": Row(
        [{"setsid": 600}, steps(3)], until_over, "finished", "played to its", at=""
    ),
    # Stops.
    "stopped with a family": Row(FAMILY, K.stop, "stopped", "user: enough"),
    "stopped, loading": Row(LOADS, K.stop, "stopped", "user: enough", at="starting"),
    "stopped, deaf": Row(
        DEAF, K.stop, "stopped", "did not end by itself in time", health={"stop_grace_seconds": 0.5}
    ),
    "stopped, then now": Row(
        DEAF, K.stop_then_now, "stopped", "user: enough", health={"stop_grace_seconds": 600}
    ),
    "two stops at once": Row(GOES_ON, K.stop_twice_at_once, "stopped", "user: enough"),
    "stopped as it ends": Row([steps(20, every=0.05)], K.stop_as_it_ends, "finished", "played to its end"),
    "stopped, suspended": Row(FAMILY, K.suspend_the_supervisor_and_stop, "stopped", "user: enough"),
    "stopped in sft": Row([{"phase": "sft"}, *HANGS], K.stop_twice, "stopped", "user: enough"),
    "stopped in evaluation": Row([{"phase": "evaluation"}, *HANGS], K.stop_twice, "stopped", "user: enough"),
    "stopped in saving": Row([{"phase": "saving"}, *HANGS], K.stop_twice, "stopped", "user: enough"),
    "stopped, then now, saving": Row(
        {"play": GOES_ON, "on_stop": HANGS}, K.stop_then_now, "stopped", "user: enough"
    ),
    "stopping, supervisor killed": Row(
        DEAF,
        K.kill_supervisor_while_stopping,
        "stopped",
        "user: enough",
        health={"stop_grace_seconds": 600},
    ),
    "trainer suspended": Row(
        GOES_ON, K.suspend_the_trainer, "failed", "no progress", health={"stall_seconds": 2}
    ),
    "taken over by three at once": Row(GOES_ON, K.attach_three_times_at_once, "stopped", "user: enough"),
    # The machine.
    "restarted": Row(GOES_ON, K.restart_the_machine, "lost", "the machine was restarted while it ran"),
    "pids reused": Row(GOES_ON, K.reuse_pids, "lost", "is gone, and so is the trainer"),
    "clock set back": Row(GOES_ON, K.set_the_clock_back, "lost", "left no exit file"),
    "clock set forward": Row(GOES_ON, K.set_the_clock_forward, "stopped", "user: enough"),
    "clock set forward, live": Row(
        GAINS, K.set_the_live_clock(3), "finished", "played to its end", clock=True
    ),
    "clock set back, live": Row(GAINS, K.set_the_live_clock(-3), "finished", "played to its end", clock=True),
    "clock set forward, live, stopped": Row(
        PARENT, K.set_the_live_clock(3, K.stop), "stopped", "user: enough", clock=True
    ),
    "clock set back, live, trainer killed": Row(
        FAMILY, K.set_the_live_clock(-3, lambda run: K.kill(run, "trainer")), "failed", "SIGKILL", clock=True
    ),
    "clock set forward, killed, resumed": Row(
        GAINS, K.set_the_live_clock(3, K.kill_both_and_resume), "finished", "played to its end", clock=True
    ),
    "clock set back, killed, resumed": Row(
        GAINS,
        K.set_the_live_clock(-3, K.kill_both_and_resume),
        "finished",
        "played to its end",
        clock=True,
    ),
    "clock set forward, quiet, taken over": Row(
        [steps(3), *HANGS], K.take_over_after_the_clock_was_set(3), "stopped", "user: enough", clock=True
    ),
    "clock set back, quiet, taken over": Row(
        [steps(3), *HANGS], K.take_over_after_the_clock_was_set(-3), "stopped", "user: enough", clock=True
    ),
    "port taken": Row(
        [{"delay": 2}, {"listen": True}], K.take_its_port, "failed", "was taken by another process"
    ),
    # The directory.
    "moved": Row(PARENT, K.move_while_it_runs, "failed", "its directory was moved from"),
    "moved, lost": Row(GOES_ON, K.move_a_lost_one, "lost", "left no exit file"),
    "moved, over": Row([steps(3)], K.move_after_the_end, "finished", "played to its end", at=""),
    "deleted": Row(FAMILY, K.delete_while_it_runs, "lost", "this is a copy of"),
    "deleted, with W&B": Row(GOES_ON, K.delete_while_it_runs, "lost", "this is a copy of", wandb="offline"),
    "home removed": Row(PARENT, K.remove_the_home_while_it_runs, "lost", "this is a copy of"),
    "copied": Row(GOES_ON, K.copy_while_it_runs, "stopped", "user: enough"),
    "copied to another host": Row(GOES_ON, K.copy_to_another_host, "stopped", "user: enough"),
    # Starts that come to nothing.
    "exit before it is ready": Row(
        [{"log": "no memory"}, {"exit": 4}, {"ready": True}], until_over, "failed", "code 4: no memory", at=""
    ),
    "exit once it is ready": Row([{"exit": 4}], until_over, "failed", "ended with code 4", at=""),
    "hangs before it is ready": Row(
        LOADS, until_over, "failed", "no progress", at="", health={"stall_seconds": 1.5}
    ),
}


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    yield home
    end_all(home)


FULL_SIZE = {
    "taken over, loading",
    "lost and stopped, deaf",
    "stopped in sft",
    "stopped in evaluation",
    "trainer segfault",
    "deleted, with W&B",
    "clock set forward, live",
    "clock set back, live, trainer killed",
    "clock set forward, killed, resumed",
    "clock set back, quiet, taken over",
}
"""Rows that combine what others show."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * (name in FULL_SIZE)) for name in ROWS]
)
def test_a_run_comes_to_the_right_end_whatever_happens(
    runs: Path, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ROWS[name]
    with ExitStack() as around:
        around.enter_context(faults.bystander())
        server = around.enter_context(WandbServer())
        if row.wandb == "live":
            use(server, monkeypatch, tmp_path)
        if row.clock:
            around.enter_context(faults.movable_clock(tmp_path / "offset"))
        budget = {"max_hours": 1.0} if row.clock else {}
        run = start(runs, row.play, row.health, tracking={"wandb": row.wandb}, budget=budget)
        if row.at:
            until_state(run, row.at)
            wanted = "trainer" if row.wandb == "off" else "recorder"
            until(lambda: wanted in run.state()["processes"])
        if row.at == "running" and row.play in (GOES_ON, FAMILY, PARENT, DEAF, A_MOMENT, GAINS):
            until(run.metrics)
        if row.play is DEAF:
            until(lambda: faults.is_deaf(run))
        if row.wandb == "live":
            until(lambda: server.runs and server.only_run().rows)
        row.fault(run)
        state = until_over(run)
        assert (state["state"], row.reason in state["reason"]) == (row.state, True), state["reason"]
        until(lambda: not faults.left_of(runs))
    took = (seconds_of(state["ended"]) or 0) - (seconds_of(state["started"]) or 0)
    assert took >= 0 or name.startswith("clock")
    assert is_over(run.state())
    if row.clock:
        assert 0 < (seconds_taken(state) or 0) < 3600
        assert state["alerts"] == []


STARTS = {
    "killed before anybody knows its trainer": (faults.STARTS_AND_DIES, "lost", "started no trainer"),
    "no such worker": (faults.HAS_NO_WORKER, "failed", "rl_cli.training.gone"),
    "the trainer cannot be started": (faults.TRAINER_IS_NOT_FOUND, "failed", "/nowhere/python"),
}


@pytest.mark.parametrize("name", STARTS)
def test_a_start_that_breaks_inside_the_supervisor_leaves_nothing(runs: Path, name: str) -> None:
    script, wanted, reason = STARTS[name]
    play = {"play": GOES_ON, "helpers": {"environment": [{"delay": 600}]}}
    run = create_run(replay_config(write_play(runs / "plays", play)), runs)
    with faults.bystander():
        faults.supervise_with(run, script)
        state = until_over(run)
        until(lambda: not faults.left_of(runs))
    assert (state["state"], reason in state["reason"]) == (wanted, True), state["reason"]


def test_a_run_that_is_stopped_before_it_has_a_supervisor_never_starts(runs: Path) -> None:
    run = create_run(replay_config(write_play(runs / "plays", FAMILY)), runs)
    with faults.bystander():
        state = stop_run(run, "user", "enough")
        start_supervisor(run)
        until(lambda: not faults.left_of(runs))
    assert (state["state"], state["reason"]) == ("stopped", "user: enough")
    assert run.state() == state
    assert not run.log_path("trainer").exists()


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_run_is_stopped_whose_supervisor_does_not_own_it_yet(runs: Path, goes_on: bool) -> None:
    """It holds the lock already, suspended: it goes on later, or never does and is ended."""
    run = create_run(replay_config(write_play(runs / "plays", FAMILY)), runs)
    with faults.bystander():
        supervisor = faults.suspended_supervisor(run)
        if goes_on:
            assert stop_run(run, "user", "enough", wait=0.5)["state"] == "created"
            os.kill(supervisor.identity.pid, signal.SIGCONT)
            state = until_over(run)
        else:
            state = stop_run(run, "user", "enough")
        until(lambda: supervisor.ended(0.1) and not faults.left_of(runs))
    assert (state["state"], state["reason"]) == ("stopped", "user: enough")
    assert not run.log_path("trainer").exists()


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3])
def test_a_run_that_is_stopped_while_it_is_being_started_leaves_nothing(runs: Path, delay: float) -> None:
    """At any moment: the command that starts it says what became of it."""
    play = write_play(runs / "plays", FAMILY)
    with faults.bystander(), ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start_run, replay_config(play), runs)
        until(lambda: list_runs(runs))
        time.sleep(delay)
        [run] = list_runs(runs)
        state = stop_run(run, "user", "enough", now=True)
        assert starting.result(60).id == run.id
        until(lambda: not faults.left_of(runs))
    assert (state["state"], state["reason"]) == ("stopped", "user: enough")
    assert [event.get("state") for event in run.events()].count("stopped") == 1


def test_a_home_that_cannot_be_written_is_one_clear_error(runs: Path) -> None:
    runs.mkdir()
    (runs / "runs").write_text("a file")
    with pytest.raises(RlCliError, match=r"not in a folder|exists already|is a file"):
        start_run(replay_config("demo"), runs)
