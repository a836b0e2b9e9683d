"""GSM8K from files: splits that share no question, and rows that are refused with their place."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import get_args

import pytest

from environments.agent_loop import LoopResult
from environments.base import Environment, Rollout, Split, Task
from environments.catalogue import load_environment
from environments.tool_context import ToolContext
from environments.word_problems import WARM_START_STREAM
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import assistant

SPLITS: tuple[Split, ...] = get_args(Split)


def rows(kind: str, count: int) -> str:
    return "".join(
        json.dumps({"question": f"{kind} {i}: what is {i} + 1?", "answer": f"Add.\n#### {i + 1}"}) + "\n"
        for i in range(count)
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.jsonl").write_text(rows("train", 60) + "\n" + rows("train", 2) + rows("test", 1))
    (tmp_path / "test.jsonl").write_text("\ufeff" + rows("test", 12), "utf-8")
    return tmp_path


def splits(env: Environment, seed: int = 0) -> dict[str, list[Task]]:
    return {split: list(env.tasks(split, seed)) for split in SPLITS}


def test_splits_are_disjoint_and_stable(folder: Path) -> None:
    first = splits(load_environment("gsm8k", {"path": str(folder)}))
    assert len(first["test"]) == 12
    assert first["test"][0].data["question"].startswith("test 0:")
    assert len(first["train"]) + len(first["validation"]) == 60  # repeated and test questions are left out
    assert len(first["validation"]) == 4
    ids = [task.id for tasks in first.values() for task in tasks]
    assert len(set(ids)) == len(ids)
    env = load_environment("gsm8k", {"path": str(folder)})
    assert splits(env) == first
    other = splits(env, seed=1)
    assert other["train"] != first["train"]
    assert {t.id for t in other["train"]} == {t.id for t in first["train"]}
    assert env.size("train") == 56


def test_one_file_makes_all_splits(tmp_path: Path) -> None:
    (tmp_path / "all.jsonl").write_text(rows("row", 40))
    made = splits(load_environment("gsm8k", {"path": str(tmp_path / "all.jsonl")}))
    assert {name: len(tasks) for name, tasks in made.items()} == {"train": 33, "validation": 3, "test": 4}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{not json", "line 3 is not JSON"),
        (b'["question"]', "line 3: a row must be an object"),
        (b'{"question": "q"}', "line 3: answer must be a text"),
        (b'{"question": " ", "answer": "1"}', "line 3: question must be a text"),
        (b'{"question": "q", "answer": "none"}', "line 3: the answer must end in a number"),
        (b'{"question": "\xff", "answer": "1"}', "line 3 is not JSON"),
    ],
)
def test_a_malformed_row_is_named_with_its_line(folder: Path, line: bytes, says: str) -> None:
    path = folder / "train.jsonl"
    path.write_bytes(rows("train", 1).encode() + b"\n" + line + b"\n")
    with pytest.raises(BadUsage, match=says):
        list(load_environment("gsm8k", {"path": str(folder)}).tasks("train", 0))


def test_missing_data_says_what_to_set(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(rows("train", 3))
    for path, says in ((tmp_path / "none", "no file or folder"), (tmp_path, r"cannot read .*test\.jsonl")):
        with pytest.raises(BadUsage, match=says) as refused:
            list(load_environment("gsm8k", {"path": str(path)}).tasks("train", 0))
        assert "train.jsonl and test.jsonl" in str(refused.value)


def verdict(env: Environment, task: Task, text: str) -> dict[str, float]:
    rollout = Rollout(task, LoopResult([*env.prompt(task), assistant(text)]))
    reward = asyncio.run(env.reward(task, rollout, ToolContext("t")))
    assert reward.value == reward.parts["correct"]
    return reward.parts


def environments(folder: Path) -> Iterator[Environment]:
    yield load_environment("gsm8k", {"path": str(folder)})
    yield load_environment("gsm8k-mini")
    yield load_environment("tool-math")


def test_rewards_are_those_of_the_number(folder: Path) -> None:
    for env in environments(folder):
        task = next(iter(env.tasks("test", 0)))
        right = str(task.data["answer"]).rsplit(" ", 1)[-1]
        assert task.data["question"] in (env.prompt(task)[-1]["content"] or "")
        assert verdict(env, task, f"so it is\n#### {right}") == {"correct": 1.0, "marker": 1.0}
        unmarked = 1.0 if env.name == "gsm8k" else 0.0
        assert verdict(env, task, f"so it is {right}") == {"correct": unmarked, "marker": 0.0}
        assert verdict(env, task, f"#### {right}1") == {"correct": 0.0, "marker": 1.0}
        assert verdict(env, task, "") == {"correct": 0.0, "marker": 0.0}


@pytest.mark.parametrize("name", ["gsm8k-mini", "tool-math"])
def test_the_endless_ones_repeat_by_seed_and_keep_splits_apart(name: str) -> None:
    env = load_environment(name)
    drawn = {split: list(islice(env.tasks(split, 3), 300)) for split in SPLITS}
    assert drawn == {split: list(islice(env.tasks(split, 3), 300)) for split in SPLITS}
    assert drawn["train"] != list(islice(env.tasks("train", 4), 300))
    questions = {split: {task.data["question"] for task in tasks} for split, tasks in drawn.items()}
    assert not questions["train"] & questions["test"]
    assert not questions["train"] & questions["validation"]
    assert not questions["validation"] & questions["test"]
    assert [env.size(split) for split in SPLITS] == [None] * 3
    assert all(json.dumps(task.data) for task in drawn["test"])


@pytest.mark.parametrize(("name", "called"), [("gsm8k-mini", False), ("tool-math", True)])
def test_worked_solutions_are_partly_too_short(name: str, called: bool) -> None:
    env = load_environment(name)
    own_stream = islice(env.tasks("train", WARM_START_STREAM), 300)
    solved = {task.data["question"]: task.data["answer"] for task in own_stream}
    rows = env.warm_start(0, 300) or []
    assert len(rows) == 300
    right = 0
    for row in rows:
        assert not row[0].trained
        assert row[-1].trained
        assert any("</call>" in segment.text for segment in row) is called
        assert all(segment.text.strip().isdigit() for segment in row[1:] if not segment.trained)
        right += row[-1].text.endswith(f"#### {solved[row[0].text]}")
    assert 0.25 < right / 300 < 0.65
