"""A run that was killed and resumed is the run that nothing happened to: same tasks, figures and weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.processes import python_module
from rl_cli.runs.resume import put_back
from rl_cli.runs.resume_plan import make_plan
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import now_text
from tests.runs.kit import until
from tests.training.conftest import make_run, work_here

pytestmark = pytest.mark.train
CHANGES = {"grpo.steps": 6, "grpo.checkpoint_every": 2, "evaluation.every": 3, "grpo.keep_last": 1}


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


def resume_alone(run: RunDir, changes: Mapping[str, Any] | None = None) -> int:
    """Puts a run back as `resume_run` does, without a supervisor; returns the step that it goes on from."""
    with run.locked() as writer:
        writer.move("failed", "it was killed", ended=now_text())
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


def test_a_run_that_is_killed_and_resumed_equals_an_undisturbed_one(home: Path):
    undisturbed, run = (make_run(home, "gsm8k-mini", CHANGES) for _ in range(2))
    assert work_here(undisturbed) == 0
    kill_at(run, 3)
    assert resume_alone(run) == 2
    assert work_here(run) == 0
    assert run.exit("trainer")["reason"] == "all 6 steps done"
    assert [row["step"] for row in run.metrics() if row["phase"] == "grpo"] == [1, 2, 3, 4, 5, 6]
    assert_same(run, undisturbed)
    which = [e["which"] for e in run.events() if e["kind"] == "evaluation" and e["split"] == "test"]
    assert which == ["untrained", "initial", "final", "best"]
    rows = [json.loads(line) for line in (run.path / "evaluations/final.jsonl").open()]
    assert len(rows) == 8
    assert all(row.keys() == {"task_id", "correct", "reward"} for row in rows)
