"""An environment judges samples, and decides how many there are."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.data.batch.filters import Filters
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.batch.merge import merge
from tests.data.generation.batches import entries, make, rows, write_prompts
from tests.wire.server import Answer, Call, Reply, Request, WireServer

LENGTHS = """
from environments.base import Environment, Reward


class Lengths(Environment):
    name = "lengths"
    description = "The longer the better."

    async def reward(self, task, rollout, ctx):
        if task.data["prompt"] == "breaks":
            raise RuntimeError("the judge is ill")
        return Reward(float(len(rollout.result.final_text)))
"""
SANDBOXED = """
from environments.base import Environment, Reward


class Left(Environment):
    name = "left"
    description = "Whether the file that was asked for is there."

    async def setup(self, task, ctx):
        await ctx.write_file("given.txt", "given")

    async def reward(self, task, rollout, ctx):
        found = await ctx.terminal("cat given.txt made.txt")
        return Reward(float(found["stdout"] == "givenmade"))
"""


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "my_envs"
    folder.mkdir()
    monkeypatch.setenv("RL_CLI_ENVIRONMENTS_DIR", str(folder))
    (folder / "lengths.py").write_text(LENGTHS)
    (folder / "left.py").write_text(SANDBOXED)
    return folder


def lengthening(request: Request, numbers: Counter[str]) -> Answer:
    asked = str(request.body["messages"][-1]["content"])
    numbers[asked] += 1
    return Reply("x" * numbers[asked])


def test_the_judge_meets_the_sandbox_of_the_sample(tmp_path: Path, environments: Path) -> None:
    def answer(request: Request) -> Answer:
        if request.body["messages"][-1]["role"] == "tool":
            return Reply("there")
        made = "made" if "good" in str(request.body["messages"][0]["content"]) else "mad"
        return Reply(calls=[Call("terminal", {"command": f"printf {made} > made.txt"})])

    with WireServer(answer) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["good", "bad"])
        make(input_, server, score="left", toolsets=["terminal"])
    assert {row["messages"][0]["content"]: row["score"] for row in rows()} == {"good": 1.0, "bad": 0.0}


def test_what_cannot_be_judged_is_kept_and_marked(tmp_path: Path, environments: Path) -> None:
    with WireServer(lambda request: Reply("answer")) as server:
        ended = make(write_prompts(tmp_path / "in.jsonl", ["breaks", "fine"]), server, score="lengths")
    assert ended.exit_code == 0
    scores = {row["messages"][0]["content"]: (row.get("score"), row["marks"]) for row in rows()}
    assert scores == {"breaks": (None, ["no_reasoning", "unscored"]), "fine": (6.0, ["no_reasoning"])}


def test_an_environment_is_not_given_the_keys(
    tmp_path: Path, environments: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-" + "Ab3dEf6hIj9lMn2pQr5t" * 2)
    code = LENGTHS.replace('name = "lengths"', 'name = "keys"')
    code = code.replace("float(len(rollout.result.final_text))", "float('OPENAI_API_KEY' in os.environ)")
    (environments / "keys.py").write_text("import os\n" + code)
    with WireServer(lambda request: Reply("fine"), key="sk-" + "Ab3dEf6hIj9lMn2pQr5t" * 2) as server:
        make(write_prompts(tmp_path / "in.jsonl", ["a"]), server, score="keys")
    assert [row["score"] for row in rows()] == [0.0]


def test_the_best_of_several_is_kept(tmp_path: Path, environments: Path) -> None:
    numbers: Counter[str] = Counter()
    with WireServer(lambda request: lengthening(request, numbers)) as server:
        make(write_prompts(tmp_path / "in.jsonl", ["a", "b"]), server, score="lengths", best_of=3)
    statistics = merge(batch_folder("b"), Filters())
    assert (statistics["merged"], sum(statistics["discarded"].values())) == (2, 4)
    kept = [json.loads(line) for line in batch_folder("b").trajectories.read_text().splitlines()]
    assert [row["score"] for row in kept] == [3.0, 3.0]


def test_an_item_is_asked_until_enough_answers_are_good_and_no_further(
    tmp_path: Path, environments: Path
) -> None:
    numbers: Counter[str] = Counter()
    with WireServer(lambda request: lengthening(request, numbers)) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", ["a", "b"])
        wanted = {"score": "lengths", "target": 2, "min_score": 3.0, "max_samples_per_prompt": 8}
        make(input_, server, **wanted)
        assert numbers == {"a": 4, "b": 4}  # of lengths 1, 2, 3, 4
        make(input_, server, **wanted)
        assert numbers == {"a": 4, "b": 4}
    assert sum(row["score"] >= 3 for row in rows()) == 4


def test_held_out_items_are_asked_from_time_to_time_and_never_become_rows(
    tmp_path: Path, environments: Path
) -> None:
    counted = count(1)
    with WireServer(lambda request: Reply("x" * next(counted))) as server:
        input_ = write_prompts(tmp_path / "in.jsonl", [f"p{n}" for n in range(12)])
        make(input_, server, score="lengths", eval_every=4, eval_held_out=2, concurrency=1)
        asked = Counter(r.body["messages"][0]["content"] for r in server.requests)
    statistics = merge(batch_folder("b"), Filters())
    curve = statistics["evaluation"]
    assert [line["n"] for line in curve] == [2, 2]
    assert curve[0]["mean_score"] < curve[1]["mean_score"]
    assert len(entries()) == 10
    assert asked["p0"] == asked["p1"] == 2
    assert not {"p0", "p1"} & {row["messages"][0]["content"] for row in rows()}


def test_an_environment_that_does_not_exist_is_told_before_anything_is_begun(tmp_path: Path) -> None:
    with WireServer() as server, pytest.raises(BadUsage, match="unknown environment"):
        make(write_prompts(tmp_path / "in.jsonl", ["a"]), server, score="lenghts")
    assert not batch_folder("b").exists()


RUDE = """
import asyncio
import sys
import time

from environments.base import Environment, Reward


class Rude(Environment):
    name = "rude"
    description = "Does what the prompt says."

    async def reward(self, task, rollout, ctx):
        match task.data["prompt"]:
            case "exit":
                sys.exit(3)
            case "interrupt":
                raise KeyboardInterrupt
            case "cancelled":
                await asyncio.wait_for(asyncio.create_task(cancelled()), 5)
            case "block":
                time.sleep(600)
            case "change":
                rollout.result.messages.clear()
                task.data["kept"].clear()
        return Reward(1.0)


async def cancelled():
    raise asyncio.CancelledError
"""


def test_whatever_an_environment_does_the_answer_is_kept(tmp_path: Path, environments: Path) -> None:
    (environments / "rude.py").write_text(RUDE)
    prompts = ["exit", "interrupt", "cancelled", "block", "change", "fine"]
    input_ = tmp_path / "in.jsonl"
    input_.write_text("".join(json.dumps({"prompt": p, "metadata": {"kept": [p]}}) + "\n" for p in prompts))
    with WireServer(lambda request: Reply("answer")) as server:
        ended = make(input_, server, score="rude", item_seconds=1.5, concurrency=1)
        assert (ended.exit_code, len(server.requests)) == (0, 6)
    assert {row["messages"][-1]["content"] for row in rows()} == {"answer"}
    assert sorted(row["metadata"]["kept"][0] for row in rows()) == sorted(prompts)
    scored = {row["messages"][0]["content"] for row in rows() if row.get("score") == 1.0}
    assert scored == {"change", "fine"}
