"""GSM8K: grade-school word problems with worked solutions (Cobbe et al. 2021, arXiv:2110.14168)."""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from environments.base import Environment, EnvironmentConfig, Reward, Rollout, Split, Task
from environments.rewards.numbers import grade_number, read_gold
from environments.rewards.well_formed import well_formed
from environments.tool_context import ToolContext
from prompts.loader import render
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.messages import Message, user

DATASET = "openai/gsm8k"
VALIDATION_SHARE = 0.07
"""Of the training rows, by a hash of the question."""
LOCAL_COPY = "set environment.options.path to a folder with train.jsonl and test.jsonl"


class Gsm8kConfig(EnvironmentConfig):
    path: str | None = None
    """Folder with train.jsonl and test.jsonl, or one JSONL file; without it, Hugging Face's openai/gsm8k."""


class Gsm8k(Environment):
    """Test is the official test set; train and validation share the official training set.

    Where `path` is a single file, a tenth of its rows are the test set.
    """

    name = "gsm8k"
    description = "Grade-school word problems (OpenAI's GSM8K); the answer is a number."
    profiles = ("single-gpu",)
    stand_in = "gsm8k-mini"
    Config = Gsm8kConfig

    def __init__(self, config: EnvironmentConfig) -> None:
        super().__init__(config)
        assert isinstance(config, Gsm8kConfig)
        self._path = Path(config.path).expanduser() if config.path else None
        self._splits: dict[Split, list[Task]] | None = None

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """Each row once: test in the file's order, the others shuffled by the seed.

        Raises:
            BadUsage: the path is missing, or a row is malformed (names file and line).
            WorkFailed: Hugging Face cannot be reached.
        """
        if self._splits is None:
            self._splits = self._load()
        tasks = list(self._splits[split])
        if split != "test":
            random.Random(f"{split}/{seed}").shuffle(tasks)
        return iter(tasks)

    def prompt(self, task: Task) -> list[Message]:
        return [user(render("gsm8k", question=task.data["question"]))]

    async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
        """1 where the stated number is the gold answer, else 0; "marker": whether one #### line states it."""
        assert rollout.result is not None
        text = rollout.result.final_text
        correct = float(grade_number(task.data["answer"], text).correct)
        return Reward(correct, {"correct": correct, "marker": float(well_formed(text))})

    def _load(self) -> dict[Split, list[Task]]:
        path = self._path
        if path is None:
            train, test = _from_hub("train"), _from_hub("test")
        elif path.is_file():
            test, train = _split(_from_file(path), 0.1)
        elif path.is_dir():
            train, test = _from_file(path / "train.jsonl"), _from_file(path / "test.jsonl")
        else:
            raise BadUsage(f"environment.options.path: there is no file or folder {path}", LOCAL_COPY)
        known = {task.id for task in test}
        validation, train = _split([task for task in train if task.id not in known], VALIDATION_SHARE)
        return {"train": train, "validation": validation, "test": test}


def _split(tasks: list[Task], share: float) -> tuple[list[Task], list[Task]]:
    """The share of the tasks with the lowest ids (they are hashes), and the rest, both in the given order."""
    count = round(share * len(tasks)) or min(1, len(tasks) // 2)
    chosen = {task.id for task in sorted(tasks, key=lambda task: task.id)[:count]}
    return [t for t in tasks if t.id in chosen], [t for t in tasks if t.id not in chosen]


def _from_file(path: Path) -> list[Task]:
    try:
        lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except OSError as error:
        raise BadUsage(
            f"environment.options.path: cannot read {path}: {error.strerror}", LOCAL_COPY
        ) from error
    return _tasks(_rows(path, lines))


def _rows(path: Path, lines: list[bytes]) -> Iterator[tuple[str, object]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield f"{path} line {number}", json.loads(line)
        except ValueError as error:
            raise BadUsage(f"{path} line {number} is not JSON: {error}") from error


def _from_hub(split: str) -> list[Task]:
    if not _hub_answers():  # then the cache or nothing; the library itself would retry for half a minute
        os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise BadUsage(
            "GSM8K from Hugging Face needs the 'train' extra",
            f"pip install 'rl-flywheel[train]', or {LOCAL_COPY}",
        ) from error
    try:
        rows = load_dataset(DATASET, "main", split=split)
    except (
        Exception
    ) as error:  # no network, no such dataset, no room, a proxy's answer: many libraries' classes
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise WorkFailed(f"cannot load {DATASET} from Hugging Face: {reason[0]}", LOCAL_COPY) from error
    return _tasks((f"{DATASET} {split} row {number}", row) for number, row in enumerate(rows, start=1))


def _hub_answers() -> bool:
    import httpx

    try:
        httpx.head(os.environ.get("HF_ENDPOINT", "https://huggingface.co"), timeout=5)
    except httpx.TransportError:
        return False
    return True


def _tasks(rows: Iterable[tuple[str, object]]) -> list[Task]:
    """Tasks of rows {"question", "answer"}, a repeated question once; each row comes with its place."""
    tasks: dict[str, Task] = {}
    for where, row in rows:
        if not isinstance(row, dict):
            raise BadUsage(f"{where}: a row must be an object with question and answer")
        for key in ("question", "answer"):
            if not isinstance(row.get(key), str) or not row[key].strip():
                raise BadUsage(f"{where}: {key} must be a text that is not empty")
        if read_gold(row["answer"]) is None:
            raise BadUsage(f"{where}: the answer must end in a number, as in '#### 42'")
        digest = hashlib.sha256(row["question"].strip().encode("utf-8", "surrogatepass")).hexdigest()
        task_id = f"gsm8k/{digest[:16]}"
        tasks.setdefault(task_id, Task(task_id, {"question": row["question"], "answer": row["answer"]}))
    if not tasks:
        raise BadUsage("environment.options.path: there is no row in the data", LOCAL_COPY)
    return list(tasks.values())
