"""A run whose supervisor was killed goes on, and another supervisor takes it over."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.runs.launch import attach_run, stop_run
from rl_cli.runs.store import RunDir
from tests.runs.kit import (
    end_all,
    identity,
    start,
    steps,
    until,
    until_over,
    until_state,
    until_step,
)

TAIL = [steps(500, every=0.05, step_from=100)]


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    yield home
    end_all(home)


def lost(home: Path, play: Any, health: dict[str, Any] | None = None, **sections: Any) -> RunDir:
    """A run whose supervisor was killed while its trainer made steps."""
    run = start(home, play, health, **sections)
    until_state(run, "running")
    until(run.metrics)
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until_state(run, "lost")
    return run


def test_a_lost_run_is_taken_over_and_finishes(runs: Path) -> None:
    run = lost(runs, [steps(120, every=0.05), {"evaluation": {"which": "final", "accuracy": 0.7}}])
    trainer, first = identity(run, "trainer"), identity(run, "supervisor")
    attach_run(run)
    assert run.state()["state"] == "running"
    assert (identity(run, "trainer"), identity(run, "supervisor") == first) == (trainer, False)
    state = until_over(run)
    assert (state["state"], state["step"], state["eval"]["final"]) == ("finished", 120, 0.7)
    kinds = [e.get("state") or e["kind"] for e in run.events() if e["kind"] in ("state", "attached")]
    assert kinds == ["starting", "running", "lost", "attached", "running", "finished"]
    with pytest.raises(BadUsage, match="it is finished"):
        attach_run(run)


def test_two_that_take_a_run_over_at_once_are_one_supervisor(runs: Path) -> None:
    run = lost(runs, TAIL)
    threads = [threading.Thread(target=attach_run, args=[run]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e["kind"] for e in run.events()].count("attached") == 1
    assert stop_run(run, "user", "enough")["reason"] == "user: enough"
    assert run.exit("trainer")["outcome"] == "stopped"


def test_an_adopted_trainer_that_ends_without_a_word_is_failed_and_the_reason_says_what_is_not_known(
    runs: Path,
) -> None:
    run = lost(runs, [{"log": "loading"}, *TAIL])
    attach_run(run)
    os.kill(identity(run, "trainer").pid, signal.SIGKILL)
    state = until_over(run)
    assert state["state"] == "failed"
    assert "without saying why, and the supervisor that would know its exit code was gone" in state["reason"]


def test_a_run_that_cannot_be_taken_over_goes_on_and_can_be_stopped(runs: Path) -> None:
    run = lost(runs, TAIL)
    (run.path / "run.yaml").write_text("environment: {name: 7}\n")
    with pytest.raises(WorkFailed, match="cannot be supervised"):
        attach_run(run)
    assert run.state()["state"] == "lost"
    assert identity(run, "trainer").alive()
    assert stop_run(run, "user", "enough")["reason"] == "user: enough"


def test_the_rules_go_on_after_a_change_of_supervisors(runs: Path) -> None:
    run = lost(runs, [steps(3), {"stall": "deaf"}], {"stall_seconds": 1.5})
    attach_run(run)
    state = until_over(run)
    assert (state["state"], "no progress" in state["reason"]) == ("failed", True), state["reason"]
    assert not identity(run, "trainer").alive()


def test_the_time_before_a_change_of_supervisors_counts(runs: Path) -> None:
    run = lost(runs, TAIL, budget={"max_hours": 6 / 3600})
    until_step(run, 180)  # after 4 s
    attach_run(run)
    state = until_over(run)
    assert (state["state"], "budget" in state["reason"]) == ("stopped", True), state["reason"]
    assert state["step"] < 270  # 300 if it began to count anew


def test_a_supervisor_that_takes_over_goes_on_with_a_stop(runs: Path) -> None:
    run = start(runs, [steps(2), {"child": 600}, {"stall": "deaf"}], {"stop_grace_seconds": 3})
    until_step(run, 2)
    stop_run(run, "user", "enough", wait=False)
    until_state(run, "stopping")
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until_state(run, "lost")
    attach_run(run)
    assert run.state()["state"] == "stopping"
    state = until_over(run)
    assert (state["state"], state["reason"].startswith("user: enough")) == ("stopped", True)
