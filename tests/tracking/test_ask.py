"""Asking W&B through the real SDK: every trouble told apart, in time, and nothing left behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from rl_cli.tracking.ask import Asker, ask, ask_async
from rl_cli.tracking.errors import WandbError
from tests.runs.kit import until
from tests.tracking.kit import use
from tests.wandb_server.faults import Fault
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, plant_run

PATH = {"path": "team/rl/abc123"}
DEADLINE = 8.0
QUICK = ("401", "403", "429-long", "500", "malformed", "graphql-error")
KINDS = {
    "401": "wrong_key",
    "403": "forbidden",
    "404": "not_found",
    "429": "rate_limited",
    "429-long": "rate_limited",
    "500": "down",
    "reset": "down",
    "hang": "slow",
    "trickle": "slow",
    "malformed": "bad_answer",
    "graphql-error": "refused",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the children keep their files."""
    folder = tmp_path / "t"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def kind_of(asker: Asker, operation: str = "run_state", deadline: float = DEADLINE) -> str:
    """Why there is no answer; the answer has to come in time."""
    began = time.monotonic()
    with pytest.raises(WandbError) as caught:
        asker.ask(operation, PATH, deadline)
    assert time.monotonic() - began < deadline + 10
    assert "0123456789abcdef" not in str(caught.value)
    return caught.value.kind


def told_apart(server: WandbServer, names: Any) -> dict[str, str]:
    found = {}
    with Asker() as asker:
        for name in names:
            server.plant(name)
            found[name] = kind_of(asker)
            server.heal()
        assert asker.ask("run_state", PATH, 60)["state"] == "running"
    return found


def test_troubles_are_told_apart_and_leave_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        plant_run(server, curve(3))
        assert told_apart(server, QUICK) == {name: KINDS[name] for name in QUICK}
    assert list(folder.iterdir()) == []


@pytest.mark.soak
@pytest.mark.waits
def test_every_trouble_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        plant_run(server, curve(3))
        assert told_apart(server, KINDS) == KINDS


def test_a_hanging_stop_is_ended_at_its_deadline_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    with WandbServer() as server, Asker() as asker:
        use(server, monkeypatch, tmp_path)
        plant_run(server, curve(3))
        asker.ask("run_state", PATH, 60)
        tree = [psutil.Process(pid) for pid in asker.pids()]
        tree += [child for process in tree for child in process.children(recursive=True)]
        assert any("wandb-core" in process.name() for process in tree)
        words = [word for process in tree for word in process.cmdline()]
        assert not any(server.api_key and server.api_key in word for word in words)
        server.plant(Fault("hang", where="StopRun"))
        assert kind_of(asker, "stop", 3) == "slow"
        assert not any(_lives(process) for process in tree)
        assert list(folder.iterdir()) == []


def test_a_cancelled_question_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    async def cancelled() -> list[psutil.Process]:
        others = set(psutil.Process().children(recursive=True))  # a sshd, an engine of other tests
        call = asyncio.create_task(ask_async("run_state", PATH, 600))
        await asyncio.to_thread(until, lambda: server.requests, 300)
        started = [one for one in psutil.Process().children(recursive=True) if one not in others]
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return started

    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        server.plant("hang")
        started = asyncio.run(cancelled())
    assert started
    assert not any(_lives(process) for process in started)
    assert list(folder.iterdir()) == []


def test_no_key_and_a_closed_port_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        with server.refuse(), pytest.raises(WandbError, match="cannot be reached") as caught:
            ask("run_state", PATH, DEADLINE)
        assert caught.value.kind == "down"
        monkeypatch.delenv("WANDB_API_KEY")
        with pytest.raises(WandbError, match="WANDB_API_KEY, or run `wandb login`") as caught:
            ask("run_state", PATH, DEADLINE)
        assert (caught.value.kind, caught.value.exit_code) == ("no_key", 2)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def test_a_child_whose_parent_was_killed_ends_and_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    code = (
        "import sys; from rl_cli.tracking.ask import ask\n"
        "import tempfile; tempfile.tempdir = sys.argv[1]\n"
        "ask('run_state', {'path': 'team/rl/abc123'}, 600)\n"
    )
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        server.plant("hang")
        parent = subprocess.Popen([sys.executable, "-P", "-c", code, str(folder)])
        until(lambda: server.requests, 60)
        tree = psutil.Process(parent.pid).children(recursive=True)
        parent.kill()
        parent.wait()
        until(lambda: not any(_lives(process) for process in tree), 30)
    assert list(folder.iterdir()) == []
