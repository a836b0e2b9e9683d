"""`rl-cli ask` about training data, as the built-in operator answers it, with a provider on the wire."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_cli.cli.main import run
from rl_cli.core.processes import kill_tree
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.jobs.job import worker_of
from tests.data.generation.batches import agent, prompts_done, write_prompts
from tests.e2e.cli import command
from tests.runs.kit import until
from tests.wire.server import Answer, Request, WireServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    monkeypatch.chdir(tmp_path)
    with WireServer(agent) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_API_KEY", "no-key")
        yield server
        if process := worker_of(batch_folder("prompts")):
            kill_tree(process, grace_seconds=0)


def test_one_sentence_makes_compresses_and_exports(
    tmp_path: Path, server: WireServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_prompts(tmp_path / "prompts.jsonl", [f"p{n}" for n in range(4)])
    words = "make 3 SFT samples from prompts.jsonl with the math tools, then compress and export them for TRL"
    assert run(["ask", words, "--model", "builtin/operator", "--yes"]) == 0
    out = capsys.readouterr().out
    assert "Exported 3 of 3 rows as trl" in out
    exports = batch_folder("prompts").path / "exports"
    assert [path.name for path in exports.iterdir()] == ["compressed-trl"]
    assert len((batch_folder("prompts").path / "compressed.jsonl").read_text().splitlines()) == 3
    assert json.loads((exports / "compressed-trl" / "export.json").read_text())["written"] == 3
    assert run(["ask", "这批怎么样了", "--model", "builtin/operator"]) == 0
    assert "批次 prompts：已完成" in capsys.readouterr().out


def test_without_a_yes_nothing_is_asked_of_the_provider(
    tmp_path: Path, server: WireServer, capsys: pytest.CaptureFixture[str]
) -> None:
    write_prompts(tmp_path / "prompts.jsonl", ["a"])
    assert run(["ask", "make 1 sample data from prompts.jsonl", "--model", "builtin/operator"]) == 3
    assert "Refused: data_generate" in capsys.readouterr().out
    assert not server.requests
    assert not batch_folder("prompts").exists()


def test_the_batch_goes_on_when_the_conversation_is_killed(tmp_path: Path, server: WireServer) -> None:
    go = threading.Event()

    def held(request: Request) -> Answer:
        if request.number >= 2:
            go.wait(60)
        return agent(request)

    server.set(held)
    write_prompts(tmp_path / "prompts.jsonl", ["a", "b", "c"])
    words = ["ask", "make 3 samples from prompts.jsonl with the math tools", "--model", "builtin/operator"]
    asking = subprocess.Popen(command(*words, "--yes"), stdout=subprocess.DEVNULL, start_new_session=True)
    until(lambda: len(server.requests) > 2)
    os.killpg(asking.pid, signal.SIGKILL)
    asking.wait()
    assert worker_of(batch_folder("prompts"))
    go.set()
    until(lambda: worker_of(batch_folder("prompts")) is None)
    assert prompts_done("prompts") == {"a": 1, "b": 1, "c": 1}
    assert len(batch_folder("prompts").trajectories.read_text().splitlines()) == 3
