"""Ctrl-C on a batch, or a terminal that is closed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.batch_runner import run_batch
from rl_cli.data.generation.progress import Progress
from rl_cli.data.generation.stopping import Stopping
from tests.data.generation.batches import (
    agent,
    config,
    entries,
    make,
    prompts_done,
    rows,
    words,
    write_prompts,
)
from tests.wire.server import Answer, Call, Reply, Request, WireServer

HANGS = f"9{os.getpid()}00000"
"""Seconds, which no other test on this machine sleeps."""


def _started(argv: list[str], home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"RL_CLI_HOME": str(home)},
        start_new_session=True,
        text=True,
    )


def _wait_for(what: object, seconds: float = 60) -> None:
    assert callable(what)
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_closed_terminal_lets_what_is_in_flight_end_and_the_batch_can_be_resumed(
    tmp_path: Path, home: Path
) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(40)])

    def answer(request: Request) -> Answer:
        reply = agent(request)
        assert isinstance(reply, Reply)
        return Reply(reply.text, reply.calls, reply.reasoning, delay=0.3)

    with WireServer(answer) as server:
        process = _started(words(input_, server, "--concurrency", "4"), home)
        _wait_for(lambda: len(server.requests) >= 9)
        os.killpg(process.pid, signal.SIGHUP)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 130, said
        assert "rl-cli data resume b" in said
        begun = {r.body["seed"] for r in server.requests}
        assert len(entries()) == len(begun) < 40, "what was begun came to its end"
        assert batch_folder("b").state()["state"] == "stopped"
        assert len(batch_folder("b").trajectories.read_text().splitlines()) == len(begun)
        server.set(agent)
        before = len(server.requests)
        assert make(input_, server).exit_code == 0
        assert not begun & {r.body["seed"] for r in server.requests[before:]}
    assert prompts_done().total() == len(prompts_done()) == 40


def test_what_is_said_while_it_ends_goes_once_it_has(tmp_path: Path) -> None:
    stopping, notes = Stopping(), list[str]()

    def press(progress: Progress) -> None:
        notes.append(progress.note)
        if not stopping.asked.is_set():
            stopping.press()

    with WireServer(agent) as server:
        given = config(write_prompts(tmp_path / "in.jsonl", ["a"]), server)
        ended = run_batch(given, press, stopping=stopping)
    assert ended.exit_code == 130
    assert any("comes to its end" in note for note in notes)
    assert notes[-1] == ended.progress.note == ""


def test_the_second_ends_it_at_once_and_nobody_else_makes_it_meanwhile(tmp_path: Path, home: Path) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b", "c"])
    with WireServer(lambda request: Reply("late", delay=60)) as server:
        process = _started(words(input_, server), home)
        _wait_for(lambda: len(server.requests) == 3)
        with pytest.raises(BadUsage, match=f"is being made by process {process.pid}"):
            make(input_, server)
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.5)  # one after the other, as a person presses
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=50)
    assert (process.returncode, entries()) == (130, [])


def test_bat_08_a_hanging_tool_does_not_hold_up_ctrl_c(tmp_path: Path, home: Path) -> None:
    def answer(request: Request) -> Answer:
        if "hang" in str(request.body["messages"][0]["content"]):
            return Reply(calls=[Call("terminal", {"command": f"sleep {HANGS}"})])
        return Reply("fine")

    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "hang", "b"])
    with WireServer(answer) as server:
        process = _started(words(input_, server, "--toolsets", "terminal"), home)
        _wait_for(lambda: len(rows()) == 2 and _sleepers())
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    assert (process.returncode, len(rows())) == (130, 2)
    assert not _sleepers()


def _sleepers() -> list[int]:
    return [p.pid for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", HANGS]]


BLOCKS = """
import time
from environments.base import Environment


class Blocks(Environment):
    name = "blocks"
    description = "Never comes back."

    async def reward(self, task, rollout, ctx):
        open(__file__ + ".began", "w").close()
        time.sleep(600)
"""


def test_a_second_ctrl_c_ends_an_environment_that_blocks_the_event_loop(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_envs").mkdir()
    (tmp_path / "my_envs" / "blocks.py").write_text(BLOCKS)
    monkeypatch.setenv("RL_CLI_ENVIRONMENTS_DIR", str(tmp_path / "my_envs"))
    with WireServer(lambda request: Reply("answer")) as server:
        argv = words(write_prompts(tmp_path / "in.jsonl", ["a", "b", "c"]), server, "--score", "blocks")
        process = _started(argv, home)
        try:
            _wait_for((tmp_path / "my_envs" / "blocks.py.began").exists)
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert "stopped by a person (rl-cli data resume b goes on)" in told
