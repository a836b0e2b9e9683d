"""The inference test: figures of a starting checkpoint, a fresh file each time, nothing left behind."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from rl_cli.config.edit import resolve
from rl_cli.config.tree import RunConfig
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.training import inference_test
from tests.processes import started
from tests.training.conftest import SMALL, make_run, work_here


def small(**changes: Any) -> RunConfig:
    return resolve("gsm8k-mini", "cpu-demo", SMALL | changes)


def run_it(config: RunConfig, models: list[str] | None, out: Path, events: list | None = None) -> dict:
    seen: list = events if events is not None else []
    return asyncio.run(inference_test.test_inference(config, models, 2, 4, out, seen.append))


@pytest.mark.train
def test_the_starting_checkpoint_and_a_runs_checkpoint_are_measured(home: Path):
    out, events = home / "inference_tests", []
    config = small()
    answer = run_it(config, None, out, events)
    [result] = answer["results"]
    assert result["model"] == "starting checkpoint"
    assert (result["tasks"], result["rollouts"], result["errors"]) == (2, 8, {})
    assert 0 <= result["accuracy"] <= 1
    assert 0 <= result["groups_without_signal"] <= 1
    assert 0 <= result["parse_failures"] <= 1
    assert result["mean_tokens"] > 0
    assert all(sample.keys() == {"task_id", "prompt", "completion", "reward"} for sample in result["samples"])
    shown = [event["row"]["step"] for event in events if event["kind"] == "metrics"]
    assert shown == sorted(shown)
    assert shown[-1] == 25
    assert {"kind": "phase", "name": "warm start"} in events
    assert 0 < answer["warm_start_seconds"] < answer["seconds"]

    run = make_run(home)
    work_here(run)
    [start] = [event for event in run.events() if event["kind"] == "warm_start"]
    assert start["source"] == "cache"  # what was tested is what GRPO started from
    again = run_it(config, ["starting checkpoint", f"run:{run.id}"], out, events := [])
    assert [r["model"] for r in again["results"]] == ["starting checkpoint", f"run:{run.id}"]
    assert not [event for event in events if event["kind"] == "metrics"]
    assert again["file"] != answer["file"]
    assert again["warm_start_seconds"] == 0.0
    assert json.loads(Path(again["file"]).read_text())["results"] == again["results"]


def test_a_scripted_model_needs_no_training(home: Path, tmp_path: Path):
    script = tmp_path / "script.yaml"
    script.write_text("- text: 'I do not know. #### 1'\n")
    answer = run_it(small(), [f"scripted/{script}"], home / "inference_tests")
    assert answer["results"][0]["groups_without_signal"] == 1.0
    assert answer["results"][0]["mean_tokens"] is not None


@pytest.mark.train
def test_what_cannot_be_tested_gets_one_line_and_leaves_no_file(home: Path, tmp_path: Path):
    out = home / "inference_tests"
    (tmp_path / "empty").mkdir()
    for model, kind, words in (
        ("run:nothing", BadUsage, "unknown run"),
        (str(tmp_path / "empty"), WorkFailed, "holds no model"),
    ):
        with pytest.raises(kind, match=words) as caught:
            run_it(small(), [model], out)
        assert "\n" not in str(caught.value)
    assert list(out.iterdir()) == []


@pytest.mark.train
def test_cancelling_ends_the_child_and_all_it_started(home: Path):
    config = small(**{"sft.steps": 5000, "sft.max_steps": 5000})

    async def cancelled_after_some_progress() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(
            inference_test.test_inference(
                config, None, 2, 4, home / "inference_tests", lambda event: started.set()
            )
        )
        await asyncio.wait_for(started.wait(), 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    before = started()
    asyncio.run(cancelled_after_some_progress())
    deadline = time.monotonic() + 60
    while started() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not started() - before
    assert list((home / "inference_tests").iterdir()) == []
