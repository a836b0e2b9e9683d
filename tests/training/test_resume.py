"""A run that was killed and resumed is the run that nothing happened to: same tasks, figures and weights."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from environments.base import Task
from rl_cli.config.edit import resolve
from rl_cli.core.errors import BadUsage
from rl_cli.core.files import read_jsonl
from rl_cli.core.processes import python_module
from rl_cli.runs.resuming.plan import make_plan
from rl_cli.runs.resuming.resume import put_back
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from rl_cli.runs.times import now_text
from rl_cli.training.trl_run import _Batches
from tests.runs.kit import until
from tests.training.conftest import make_run, work_here
from tests.training.test_single_gpu import TINY_STEPS

pytestmark = pytest.mark.train
CHANGES = {"grpo.steps": 10, "grpo.checkpoint_every": 5, "evaluation.every": 5, "grpo.keep_last": 1}


def begin(run: RunDir) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        python_module("rl_cli.training.trl_worker", str(run.path)),
        cwd=run.path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=(run.path / "logs" / "trainer.log").open("ab"),
        stderr=subprocess.STDOUT,
    )


def kill_at(run: RunDir, step: int) -> None:
    """Runs the worker until it has written a step's row, and kills it."""
    worker = begin(run)
    reached = ("grpo", step)
    until(lambda: worker.poll() is not None or _newest(run) >= reached, 300)
    worker.send_signal(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL, run.log_path("trainer").read_text()


def _newest(run: RunDir) -> tuple[str, int]:
    row = run.last_metrics()
    return ("grpo" if row.get("phase") == "grpo" else "", row.get("step", 0))


def resume_alone(run: RunDir, changes: Mapping[str, Any] | None = None, state: str = "failed") -> int:
    """Puts a run back as `resume_run` does, without a supervisor; returns the step that it goes on from."""
    with run.locked() as writer:
        writer.move(state, "it was killed", ended=now_text())
        plan, config = make_plan(run, writer.state, changes or {})
        put_back(run, writer, plan, config, {})
    return plan.step


def figures(run: RunDir) -> list[dict[str, Any]]:
    rows = run.metrics()
    return [{k: v for k, v in row.items() if k != "time" and not k.startswith("seconds/")} for row in rows]


def samples(run: RunDir) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "time"} for row in run.samples()]


def assert_same(run: RunDir, undisturbed: RunDir) -> None:
    """The same tasks, answers, figures, results and weights, to the last bit."""
    assert samples(run) == samples(undisturbed)
    assert [r for r in figures(run) if r["phase"] == "grpo"] == [
        r for r in figures(undisturbed) if r["phase"] == "grpo"
    ]
    for which in ("untrained", "initial", "best", "final"):
        name = f"evaluations/{which}.jsonl"
        assert (run.path / name).read_bytes() == (undisturbed.path / name).read_bytes()
    ours, theirs = (sorted((r.path / "checkpoints").iterdir()) for r in (run, undisturbed))
    assert [path.name for path in ours] == [path.name for path in theirs]
    for one, other in zip(ours, theirs, strict=True):
        weights = "model.safetensors"
        assert (one / weights).read_bytes() == (other / weights).read_bytes(), one.name


def test_ops_19_a_killed_run_does_each_batch_once_and_equals_an_undisturbed_one(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    undisturbed, run = (make_run(home, changes=CHANGES) for _ in range(2))
    batches: list[int] = []
    take = _Batches.take

    def watched(self: _Batches, numbers: Sequence[int]) -> list[Task]:
        batches.append(numbers[0] // self.size + 1)
        return take(self, numbers)

    monkeypatch.setattr(_Batches, "take", watched)
    assert work_here(undisturbed) == 0
    assert batches == list(range(1, 11))
    kill_at(run, 7)
    done = [(row["phase"], row["step"]) for row in run.metrics()]
    assert resume_alone(run) == 5
    cut = [(row["phase"], row["step"]) for row in read_jsonl(run.path / "attempts" / "1" / "metrics.jsonl")]
    assert (done[-len(cut) :], cut[:2]) == (cut, [("grpo", 6), ("grpo", 7)])
    batches.clear()
    assert work_here(run) == 0
    assert batches == [6, 7, 8, 9, 10]
    assert run.exit("trainer")["reason"] == "all 10 steps done"
    assert [row["step"] for row in run.metrics() if row["phase"] == "grpo"] == list(range(1, 11))
    assert_same(run, undisturbed)
    which = [e["which"] for e in run.events() if e["kind"] == "evaluation" and e["split"] == "test"]
    assert which == ["untrained", "initial", "final", "best"]
    rows = [json.loads(line) for line in (run.path / "evaluations/final.jsonl").open()]
    assert len(rows) == 8
    assert all(row.keys() == {"task_id", "correct", "reward"} for row in rows)


def test_a_finished_run_goes_on_when_it_is_given_more_steps(home: Path):
    run = make_run(home)
    assert work_here(run) == 0
    with pytest.raises(BadUsage, match="all 2 steps are done"):
        resume_alone(run, state="finished")
    changes = {"grpo.steps": 3, "grpo.learning_rate": 1e-5}
    assert resume_alone(run, changes, state="finished") == 2
    assert not (run.path / "evaluations/final.jsonl").exists()
    assert work_here(run) == 0
    rates = [row["learning_rate"] for row in run.metrics() if row["phase"] == "grpo"]
    assert rates == [3e-4, 3e-4, 1e-5]
    tokens = [row["tokens"] for row in run.metrics() if row["phase"] == "grpo"]
    assert tokens == sorted(set(tokens))
    assert (run.path / "attempts/1/evaluations/final.jsonl").exists()
    assert run.exit("trainer")["reason"] == "all 3 steps done"
    assert resume_alone(run, {"grpo.learning_rate": 1e-4}, state="failed") == 3
    assert work_here(run) == 0  # nothing is left but to measure
    assert len([row for row in run.metrics() if row["phase"] == "grpo"]) == 3
    assert (run.path / "evaluations/final.jsonl").exists()


@pytest.mark.parametrize(
    "changes",
    [{"model.lora": {"rank": 4}}, {"grpo.kl_beta": 0.1, "model.dtype": "float32"}],
    ids=["lora, bfloat16", "with a KL penalty"],
)
def test_a_chat_model_goes_on_with_the_same_answers(
    home: Path, chat_model: Path, sums: Path, changes: dict[str, Any]
):
    given = {"model.name": str(chat_model), "environment.options.path": str(sums), "grpo.keep_last": 3}
    given |= TINY_STEPS | {"grpo.steps": 3, "grpo.checkpoint_every": 1} | changes
    run = create_run(resolve("gsm8k", "single-gpu", given), home)
    assert work_here(run) == 0
    undisturbed = RunDir(run.path.with_name("undisturbed"))
    shutil.copytree(run.path, undisturbed.path)
    for step in (2, 3):
        shutil.rmtree(run.path / "checkpoints" / f"step-{step}")
    assert resume_alone(run) == 1
    assert len(run.metrics()) == 1
    assert work_here(run) == 0
    assert samples(run) == samples(undisturbed)
    assert figures(run) == figures(undisturbed)
