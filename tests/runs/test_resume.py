"""Runs that are over go on from their last good checkpoint, any number of times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rl_cli.runs.resume import resume_run
from rl_cli.runs.store import RunDir
from tests.runs.kit import start, steps, until_over


def grpo_steps(run: RunDir) -> list[int]:
    return [row["step"] for row in run.metrics() if row["phase"] == "grpo"]


def kinds(run: RunDir, kind: str) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["kind"] == kind]


THREE_KILLS = [
    {"phase": "sft"},
    {"step": 5, "phase": "sft", "loss": 2.0},
    {"warm_start": {"accuracy": 0.2}},
    {"evaluation": {"which": "initial", "accuracy": 0.2}},
    steps(6, 0),
    {"checkpoint": 5},
    {"kill": 9},
    steps(4, 0, step_from=7),
    {"checkpoint": 10},
    steps(3, 0, step_from=11),
    {"kill": 9},
    steps(3, 0, step_from=14),
    {"kill": 9},
    {"checkpoint": 15},
    steps(4, 0, step_from=17),
    {"evaluation": {"which": "final", "accuracy": 0.6}},
]


def test_a_run_that_is_killed_three_times_has_a_curve_without_gap_or_double(runs: Path):
    run = start(runs, THREE_KILLS)
    begun_at = []
    for attempt in (1, 2, 3):
        state = until_over(run)
        assert (state["state"], state.get("attempt") or 1) == ("failed", attempt)
        assert "SIGKILL" in state["reason"]
        resumed = resume_run(run)
        assert not resumed.attached
        begun_at.append(resumed.step)
    state = until_over(run)
    assert (state["state"], state["attempt"], begun_at) == ("finished", 4, [5, 10, 10])
    assert [row["phase"] for row in run.metrics()] == ["sft"] + ["grpo"] * 20
    assert grpo_steps(run) == list(range(1, 21))
    assert [event["step"] for event in kinds(run, "resumed")] == begun_at
    assert len(kinds(run, "warm_start")) == 1
    assert state["eval"]["initial"] == 0.2
    assert state["eval"]["final"] == 0.6
    kept = [json.loads(line)["step"] for line in (run.path / "attempts/2/metrics.jsonl").open()]
    assert kept == [11, 12, 13]
    assert state["seconds_before"] > 0
