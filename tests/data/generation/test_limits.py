"""Sandboxes that break, times that are over, environments that fail at the end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.data.generation.batches import agent, entries, make, rows, write_prompts
from tests.wire.server import Answer, Call, Reply, Request, WireServer

ILL_AT_THE_END = """
from environments.base import Environment, Reward


class Ill(Environment):
    name = "ill"
    description = "Cannot clean up."

    async def teardown(self, task, ctx):
        raise OSError("the broom is broken")

    async def reward(self, task, rollout, ctx):
        return Reward(1.0)
"""


def _uses_terminal(request: Request) -> Answer:
    """A model that looks around, and in one conversation ends what its sandbox depends on."""
    if request.body["messages"][-1]["role"] == "tool":
        return Reply("done", reasoning="so")
    command = "kill -9 $PPID" if request.body["messages"][0]["content"] == "b" else "ls"
    return Reply(calls=[Call("terminal", {"command": command})], reasoning="I look")


def test_nothing_more_is_asked_once_the_sandbox_is_broken(tmp_path: Path) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b", "c"])
    with WireServer(_uses_terminal) as server:
        ended = make(input_, server, toolsets=["terminal"], concurrency=1)
        asked = Counter(r.body["messages"][0]["content"] for r in server.requests)
    assert asked == {"a": 2, "b": 2, "c": 2}  # b: the first turn of each of two attempts
    assert (ended.state, ended.exit_code) == ("finished", 1)
    failed = next(entry for entry in entries() if entry["state"] == "failed")
    assert (failed["reason"], failed["attempts"]) == ("sandbox", 2)
    assert failed["row"]
    assert failed["row"]["usage"]["requests"] == 2


def test_a_row_brings_a_folder_that_lies_beside_its_input_and_no_other(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    (beside / "project").mkdir(parents=True)
    (beside / "project" / "own.py").touch()
    (beside / "away").symlink_to(tmp_path)
    named = ["project", "..", str(tmp_path), "away", "nowhere", "/"]
    input_ = beside / "in.jsonl"
    input_.write_text("".join(json.dumps({"prompt": cwd, "cwd": cwd}) + "\n" for cwd in named))
    with WireServer(_uses_terminal) as server:
        make(input_, server, toolsets=["terminal"], concurrency=1)
        assert len(server.requests) == 2
        looked = server.requests[1].body["messages"][-1]["content"]
    assert "own.py" in looked
    [done] = [entry for entry in entries() if entry["state"] == "done"]
    assert done["row"]["messages"][0]["content"] == "project"
    assert {entry["reason"] for entry in entries() if entry["state"] == "failed"} <= {"sandbox"}


def test_sandboxes_that_all_break_mark_nothing(tmp_path: Path) -> None:
    input_ = tmp_path / "in.jsonl"
    input_.write_text("".join(json.dumps({"prompt": n, "cwd": "no-such-folder"}) + "\n" for n in range(9)))
    with WireServer(_uses_terminal) as server:
        ended = make(input_, server, toolsets=["terminal"], give_up_after=3, concurrency=1)
        assert not server.requests
    assert (ended.state, ended.exit_code, entries()) == ("failed", 1, [])
    assert ended.reason
    assert "3 samples in a row failed" in ended.reason
    assert "the row names the folder" in ended.reason


def test_a_server_that_never_answers_marks_nothing(tmp_path: Path) -> None:
    input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b", "c"])
    with WireServer(lambda request: Reply("late", delay=60)) as server:
        ended = make(input_, server, item_seconds=0.5)
        assert (ended.state, ended.exit_code, entries()) == ("failed", 1, [])
        server.set(agent)
        assert make(input_, server).exit_code == 0


def test_a_sample_that_runs_out_of_time_keeps_what_it_has(tmp_path: Path) -> None:
    def answer(request: Request) -> Answer:
        late = request.body["messages"][-1]["role"] == "tool"
        return Reply("late", delay=60) if late else agent(request)

    with WireServer(answer) as server:
        ended = make(write_prompts(tmp_path / "in.jsonl", ["a"]), server, item_seconds=2)
    (row,) = rows()
    assert (ended.exit_code, row["completed"], row["marks"]) == (0, False, ["deadline", "incomplete"])
    assert [message["role"] for message in row["messages"]] == ["user", "assistant", "tool"]


def test_a_broken_teardown_costs_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RL_CLI_ENVIRONMENTS_DIR", str(tmp_path))
    (tmp_path / "ill.py").write_text(ILL_AT_THE_END)
    with WireServer(agent) as server:
        ended = make(write_prompts(tmp_path / "in.jsonl", ["a"]), server, score="ill")
    assert (ended.exit_code, [row["score"] for row in rows()]) == (0, [1.0])


def test_turns_and_tokens_are_bounded(tmp_path: Path) -> None:
    with WireServer(lambda request: Reply(calls=[Call("calculator", {"expression": "1"})])) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
        make(input_, server, name="turns", max_turns=3)
        assert len(server.requests) == 3
        make(input_, server, name="tokens", max_tokens=1)
        assert len(server.requests) == 4
    assert "max_turns" in rows("turns")[0]["marks"]
    assert "token_limit" in rows("tokens")[0]["marks"]


def test_a_row_says_how_often_it_is_asked_and_with_which_tools(tmp_path: Path) -> None:
    input_ = tmp_path / "in.jsonl"
    lines = [{"prompt": "a", "n": 3}, {"prompt": "b", "toolsets": "files,math"}, {"prompt": "c"}]
    input_.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with WireServer(lambda request: Reply("fine")) as server:
        make(input_, server, toolsets=[])
    found = Counter((row["messages"][0]["content"], *row["toolsets"]) for row in rows())
    assert found == {("a",): 3, ("b", "files", "math"): 1, ("c",): 1}


HANGS = """
import asyncio
from environments.base import Environment


class Hangs(Environment):
    name = "hangs"
    description = "Judges for ever."

    async def reward(self, task, rollout, ctx):
        await asyncio.sleep(1000)
"""


def test_a_judge_that_hangs_costs_its_score_and_not_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    monkeypatch.setenv("RL_CLI_ENVIRONMENTS_DIR", str(tmp_path))
    with WireServer(lambda request: Reply("fine")) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["a"])
        ended = make(input_, server, score="hangs", item_seconds=1.0)
    assert (ended.exit_code, ended.progress.done) == (0, 1)
    assert "unscored" in rows()[0]["marks"]
