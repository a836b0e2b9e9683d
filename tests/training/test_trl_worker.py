"""The worker as the supervisor starts it: whole runs of seconds, stops, failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rl_cli.runs.run_dir import RunDir
from tests.components import mounts
from tests.training.conftest import make_run, work, work_here

pytestmark = pytest.mark.train


def kinds(run: RunDir, kind: str) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["kind"] == kind]


@pytest.mark.soak
def test_two_runs_at_once_train_one_warm_start_and_do_not_disturb_each_other(home: Path):
    runs = [make_run(home) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(work, runs))
    source = {run: kinds(run, "warm_start")[0]["source"] for run in runs}
    assert sorted(source.values()) == ["cache", "trained here"], [ended.stderr for ended in ends]
    run, again = sorted(runs, key=lambda run: source[run], reverse=True)
    _is_whole(run)
    figures = ("phase", "step", "loss", "grad_norm", "reward/mean", "entropy", "accuracy/validation")
    ours, theirs = ([[row.get(name) for name in figures] for row in r.metrics()] for r in (run, again))
    assert ours == theirs


def _is_whole(run: RunDir) -> None:
    """Every file of a run that went from its warm start to its last evaluation."""
    assert run.exit("trainer") | {"time": ""} == {
        "process": "trainer",
        "code": 0,
        "outcome": "finished",
        "reason": "all 2 steps done",
        "time": "",
    }
    phases = [event["name"] for event in kinds(run, "phase")]
    assert phases == ["loading", "sft", "evaluation", "grpo", "evaluation"]
    evaluations = {event["which"]: event for event in kinds(run, "evaluation")}
    assert list(evaluations) == ["untrained", "initial", "validation", "final", "best"]
    assert {e["n"] for e in evaluations.values()} == {8}
    assert evaluations["validation"]["split"] == "validation"
    assert evaluations["best"]["split"] == evaluations["final"]["split"] == "test"
    [start] = kinds(run, "warm_start")
    assert (start["source"], start["steps"]) == ("trained here", 25)
    assert "deliberately imperfect" in start["note"]
    rows = run.metrics()
    assert [row["step"] for row in rows if row["phase"] == "grpo"] == [1, 2]
    assert {row["step"] for row in rows if row["phase"] == "sft"} == {5, 10, 15, 20, 25}
    needed = {
        "loss", "grad_norm", "learning_rate", "reward/mean", "reward/std", "groups/with_signal", "entropy",
        "completion/mean_tokens", "completion/clipped", "rollouts/errors", "logprob/max_diff", "seconds/step",
        "seconds/rollout", "accuracy/validation", "tokens",
    }  # fmt: skip
    assert needed <= rows[-1].keys()
    assert rows[-1]["logprob/max_diff"] < 1e-4
    assert rows[-1]["tokens"] > rows[-2]["tokens"] > 0
    samples = run.samples()
    assert {sample["step"] for sample in samples} == {1, 2}
    assert all(sample["prompt"] and sample["completion"] is not None for sample in samples)
    for event in kinds(run, "checkpoint"):
        assert (Path(event["path"]) / "model.safetensors").is_file()
        assert (Path(event["path"]) / "optimizer.pt").is_file()
    assert not (run.path / "checkpoints" / ".writing").exists()
    assert run.ready("trainer")["total_steps"] == 2


def test_a_damaged_warm_start_is_built_anew(home: Path):
    run = make_run(home, changes={"grpo.steps": 1})
    work_here(run)
    [folder] = [path for path in (home / "warm_starts").iterdir() if path.is_dir()]
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    again = make_run(home, changes={"grpo.steps": 1})
    work_here(again)
    assert again.exit("trainer")["outcome"] == "finished"
    [warning] = kinds(again, "warning")
    assert "changed: model.safetensors" in warning["message"]
    assert kinds(again, "warm_start")[0]["source"] == "trained here"


@pytest.mark.parametrize(
    ("phase", "reason", "evaluated"),
    [("sft", "before the warm start was ready", False), ("grpo", "after step", True)],
)
def test_a_stop_is_heeded_between_steps(home: Path, phase: str, reason: str, evaluated: bool):
    long = {"sft.steps": 5000, "sft.max_steps": 5000} if phase == "sft" else {"grpo.steps": 5000}
    run = make_run(home, changes=long)
    over = threading.Event()

    def stop_it() -> None:
        while not over.wait(0.05):
            if any(row["phase"] == phase for row in run.metrics()):
                run.request_stop("user", "seen enough")

    threading.Thread(target=stop_it, daemon=True).start()
    try:
        assert work_here(run) == 0
    finally:
        over.set()
    ended = run.exit("trainer")
    assert ended["outcome"] == "stopped"
    assert "seen enough" in ended["reason"]
    assert reason in ended["reason"]
    which = [event["which"] for event in kinds(run, "evaluation")]
    assert ("final" in which) == evaluated
    steps = [row["step"] for row in run.metrics() if row["phase"] == "grpo"]
    assert [event["step"] for event in kinds(run, "checkpoint")][-1:] == steps[-1:]
    assert [path for path in (home / "warm_starts").iterdir() if path.name.startswith(".new")] == []


def test_a_loss_that_is_no_number_is_written_and_ends_the_run(home: Path):
    run = make_run(home, changes={"grpo.learning_rate": 1e38, "grpo.steps": 6, "sft.learning_rate": 1e-3})
    work_here(run)
    ended = run.exit("trainer")
    assert ended["outcome"] == "failed"
    assert "is NaN at grpo step" in ended["reason"]
    assert "learning rate" in ended["reason"]
    last = run.metrics()[-1]
    assert "NaN" in (last["loss"], last["grad_norm"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sft.gate": 1.0}, "GRPO needs sft.gate 1 to have something to learn from"),
        ({"sft.steps": 0, "sft.max_steps": 0, "grpo.steps": 1}, "all 1 steps done"),
    ],
)
def test_grpo_starts_only_above_the_gate(home: Path, changes: dict, reason: str):
    run = make_run(home, changes=changes)
    work_here(run)
    assert reason in run.exit("trainer")["reason"]
    trained = [row for row in run.metrics() if row["phase"] == "grpo"]
    assert len(trained) == (0 if "sft.gate" in changes else 1)


def test_what_cannot_be_trained_fails_with_one_line(home: Path, sums: Path, tmp_path: Path):
    """The config is checked when it is edited; a run.yaml from elsewhere meets the worker's own checks."""
    from rl_cli.config.tree import RunConfig
    from rl_cli.runs.store import create_run

    base = {"profile": "single-gpu", "sft": {"steps": 0}, "model": {"name": str(tmp_path)}}
    cases = {
        "a step needs 32": {"environment": {"name": "gsm8k", "options": {"path": str(sums)}}},
        "cannot load the model": {
            "environment": {"name": "gsm8k", "options": {"path": str(sums)}},
            "grpo": {"batch_size": 16},
        },
        "did you mean": {"environment": {"name": "gsm8k-mni"}},
    }
    for reason, part in cases.items():
        run = create_run(RunConfig.model_validate(base | part), home)
        code = work_here(run)
        record = run.exit("trainer")
        assert (code, record["outcome"]) == (1, "failed")
        assert reason in record["reason"]
        assert "\n" not in record["reason"]


def test_a_full_disk_fails_the_run_and_says_so(home: Path, tmp_path: Path):
    mounts()
    home.mkdir()
    script = f"""
        mount -t tmpfs -o size=600k tmpfs {home}
        python -c 'from tests.training.conftest import make_run; from pathlib import Path
print(make_run(Path("{home}")).path)' > {tmp_path}/path
        run=$(cat {tmp_path}/path)
        python -P -m rl_cli.training.trl_worker $run > {tmp_path}/log 2>&1
        cat $run/exit/trainer.json
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["unshare", "-m", "bash", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path},
    )
    assert ran.stdout, ran.stderr + (tmp_path / "log").read_text()
    record = json.loads(ran.stdout)
    assert record["outcome"] == "failed"
    assert "the disk is full" in record["reason"]
