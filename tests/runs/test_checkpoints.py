"""Checkpoints are whole or not there, damage is found, and the right ones are kept."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest

from rl_cli.config.tree import GrpoSection
from rl_cli.runs import checkpoints
from rl_cli.runs.checkpoints import Checkpoint
from rl_cli.runs.retention import keep, to_remove
from rl_cli.runs.store import RunDir, create_run
from tests.runs.kit import replay_config


def put(run: Path, step: int, content: bytes = b"weights") -> Checkpoint:
    folder = run / checkpoints.FOLDER / checkpoints.WRITING
    (folder / "deep").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(content)
    (folder / "deep" / "optimizer.pt").write_bytes(b"moments" * 100)
    return Checkpoint(step, checkpoints.place(run, step, folder))


def truncate(folder: Path) -> None:
    (folder / "deep" / "optimizer.pt").write_bytes(b"mom")


def flip(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"weightz")


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (truncate, "deep/optimizer.pt has 3 bytes and had 700"),
        (flip, "model.safetensors has changed"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda folder: (folder / "checkpoint.json").unlink(), "it was never completed"),
        (lambda folder: (folder / "checkpoint.json").write_text('{"files": 3}'), "cannot be read"),
        (lambda folder: (folder / "checkpoint.json").write_text('{"fil'), "cannot be read"),
        (lambda folder: (folder / "checkpoint.json").write_text("[" * 100_000), "cannot be read"),
        (lambda folder: (folder / "checkpoint.json").write_text('{"step": 10}'), "it is of step 10"),
    ],
)
def test_damage_is_found(tmp_path: Path, harm, told: str):
    one = put(tmp_path, 4)
    assert one.damage() is None
    harm(one.path)
    assert told in (one.damage() or "")


def test_a_checkpoint_of_the_same_step_replaces_the_old_one(tmp_path: Path):
    put(tmp_path, 4, b"old")
    again = put(tmp_path, 4, b"new!")
    assert (again.path / "model.safetensors").read_bytes() == b"new!"
    assert again.damage() is None
    assert [path.name for path in again.path.parent.iterdir()] == ["step-4"]


def test_what_is_half_written_or_half_removed_is_no_checkpoint(tmp_path: Path):
    put(tmp_path, 4)
    for name in (".writing", ".removed-step-2", "step-x"):
        (tmp_path / "checkpoints" / name).mkdir()
    assert [one.step for one in checkpoints.all_checkpoints(tmp_path)] == [4]
    checkpoints.sweep(tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-4", "step-x"]


def test_what_is_always_kept():
    """Over random runs: the newest, the newest good one, the best good one, the multiples; nothing else."""
    draw = random.Random(0)
    for _ in range(3000):
        steps = sorted(draw.sample(range(1, 60), draw.randint(1, 20)))
        accuracies = {step: draw.choice([0.1, 0.2, 0.3]) for step in steps if draw.random() < 0.7}
        broken = draw.choice([math.inf, math.inf, draw.randint(1, 60)])
        last, every = draw.randint(1, 4), draw.choice([None, 5, 10])
        kept = keep(steps, accuracies, broken, GrpoSection(keep_last=last, keep_every=every))
        good = [step for step in steps if step < broken]
        assert kept <= set(steps)
        assert steps[-1] in kept
        assert set(good[-last:]) <= kept
        judged = [step for step in good if step in accuracies]
        best = max(judged, key=lambda step: (accuracies[step], step), default=None)
        assert best is None or best in kept
        multiples = {step for step in good if every and step % every == 0}
        assert multiples <= kept
        assert kept == {steps[-1], *good[-last:], *([best] if best else []), *multiples}


def test_only_complete_checkpoints_are_removed(home: Path):
    run = create_run(replay_config(grpo={"keep_last": 1, "keep_every": 4}), home)
    for step in range(1, 7):
        run.append_metrics("grpo", step, loss=0.1, **{"accuracy/validation": 0.5 if step == 3 else 0.1})
    for step in range(1, 7):
        put(run.path, step)
    truncate(run.path / "checkpoints" / "step-1")
    assert [path.name for path in to_remove(run)] == ["step-2", "step-5"]
    run.append_metrics("grpo", 7, loss=math.nan)
    put(run.path, 7)
    assert [path.name for path in to_remove(run)] == ["step-2", "step-5"]
    assert to_remove(RunDir(run.path)) == to_remove(run)
