"""`judge`: what is true of a run whose supervisor cannot say it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.state_file import ending_of, is_over, judge
from rl_cli.runs.times import is_ahead, now_text, time_text

LONG_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def alive() -> Iterator[dict[str, Any]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield ProcessIdentity.of(process.pid).to_dict()
    process.kill()
    process.wait()


def gone() -> dict[str, Any]:
    """A process that was there: its pid may belong to another one by now."""
    return {**ProcessIdentity.current().to_dict(), "started": 1.0}


def running(supervisor: dict[str, Any], trainer: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    processes = {"trainer": trainer} if trainer else {}
    fixed = {"state": "running", "reason": None, "ended": None, "heartbeat": LONG_AGO}
    return {**fixed, "supervisor": supervisor, "processes": processes, **more}


def exited(outcome: str) -> dict[str, Any]:
    return {"outcome": outcome, "reason": f"trainer says {outcome}", "code": 0, "time": now_text()}


def test_a_living_supervisor_is_believed(alive: dict[str, Any]) -> None:
    state = running(alive, None)
    assert judge(state, None) is state
    assert judge(state, exited("finished")) is state


def test_a_trainer_that_goes_on_alone_is_lost_but_not_over(alive: dict[str, Any]) -> None:
    true = judge(running(gone(), alive), None)
    assert true["state"] == "lost"
    assert not is_over(true)
    assert judge(true, exited("finished"))["state"] == "finished"


def test_a_run_without_any_process_is_lost_and_over() -> None:
    true = judge(running(gone(), gone()), None)
    assert true["state"] == "lost"
    assert is_over(true)
    assert "no exit file" in true["reason"]
    assert judge(true, None) is true


@pytest.mark.parametrize("outcome", ["finished", "stopped", "failed"])
def test_an_exit_file_outlives_the_supervisor(outcome: str) -> None:
    true = judge(running(gone(), gone()), exited(outcome))
    assert (true["state"], true["reason"]) == (outcome, f"trainer says {outcome}")
    assert is_over(true)


def test_a_run_that_was_being_ended_has_ended_as_that() -> None:
    verdict = {"state": "stopped", "reason": "user: enough"}
    true = judge(running(gone(), gone(), state="stopping", verdict=verdict), None)
    assert (true["state"], true["reason"]) == ("stopped", "user: enough")


def test_another_hosts_supervisor_is_judged_by_its_heartbeat() -> None:
    far = {**gone(), "host": "another-host"}
    fresh = running(far, None, heartbeat=now_text())
    assert judge(fresh, None) is fresh
    assert judge(running(far, None), None)["state"] == "lost"


def test_a_heartbeat_that_lies_years_ahead_is_none() -> None:
    elsewhere = {"pid": 1, "started": 0.0, "host": "another"}
    hour = time_text(time.time() + 3600)
    state = running(elsewhere, None, heartbeat=hour)
    assert judge(state, None) is state
    judged = judge({**state, "heartbeat": "9999-01-01T00:00:00Z"}, None)
    assert judged["state"] == "lost"
    assert "lies in the future: 9999" in judged["reason"]
    assert not is_ahead(judged["ended"])


def test_who_is_believed_at_the_end() -> None:
    failed, asked = {"state": "failed", "reason": "NaN"}, {"state": "stopped", "reason": "user"}
    target = {"state": "finished", "reason": "target"}
    assert ending_of(exited("stopped"), failed)["state"] == "failed"
    assert ending_of(exited("finished"), failed)["state"] == "failed"
    assert ending_of(exited("stopped"), target) == target
    assert ending_of(exited("finished"), asked)["reason"] == "trainer says finished"
    assert ending_of(exited("failed"), asked)["reason"] == "trainer says failed"
    assert ending_of(exited("nonsense"), None)["state"] == "failed"
