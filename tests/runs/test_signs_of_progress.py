"""Only the trainer's own writing is progress, and every row is judged, however many come at a time."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rl_cli.runs.launch import attach_run
from rl_cli.runs.progress import Progress
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over
from rl_cli.runs.times import time_text
from tests.runs.kit import identity, start, steps, until, until_over, until_state, until_step

FALLS = {"reward/mean": [0.7, 0.1], "entropy": [0.5, 0.001], "completion/clipped": [0.0, 0.9]}


def test_what_others_write_is_no_progress(runs: Path) -> None:
    run = start(runs, [{"phase": "grpo"}, steps(3), {"stall": True}], {"stall_seconds": 3})
    until_step(run, 3)
    deadline = time.monotonic() + 60
    while not is_over(run.state()) and time.monotonic() < deadline:
        for kind in ("decision", "alert", "wandb", "checks_missed"):
            run.append_event(kind, rule="test", message="by another process")
        time.sleep(0.3)
    assert run.state()["state"] == "failed"
    assert "stalled after step 3" in run.state()["reason"]


def test_a_new_supervisor_does_not_forget_how_long_the_trainer_is_silent(runs: Path) -> None:
    run = start(runs, [{"phase": "grpo"}, steps(3), {"stall": True}], {"stall_seconds": 1800})
    until_step(run, 3)
    until_state(run, "running")
    _kill_supervisor(run)
    for name in ("metrics.jsonl", "events.jsonl"):
        _an_hour_earlier(run.path / name)
    run.append_event("decision", what="continue", reason="by another process")
    attach_run(run)
    assert until_over(run)["reason"].startswith("stalled after step 3: no progress was written for 36")


def test_the_rules_see_each_row_however_many_come_at_a_time(runs: Path) -> None:
    alerts = {"warmup_steps": 5}
    played = [start(runs, [steps(40, every, **FALLS)], {"alerts": alerts}) for every in (0.0, 0.03, 0.15)]
    found = [_alerts(until_over(run)) for run in played]
    assert found[0]
    assert found[0] == found[1] == found[2]


def test_a_run_that_is_silent_for_unusually_long_is_told_of() -> None:
    progress = Progress(total_steps=40)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for i in range(5):
        row = {
            "time": time_text((began + timedelta(seconds=2 * i)).timestamp()),
            "phase": "grpo",
            "step": i + 1,
        }
        progress.feed([{**row, "seconds/step": 2.0}], [])
    last = began.timestamp() + 8
    assert progress.quiet(last + 5, 300) is None
    assert progress.quiet(last + 27, 300) == "no new step for 27 s; called stalled at 5 min 00 s"
    evaluation = {"kind": "phase", "name": "evaluation", "time": time_text(last + 20)}
    progress.feed([], [evaluation, {"kind": "decision", "time": time_text(last + 60)}])
    assert progress.quiet(last + 80, 300) is None
    assert progress.quiet(last + 220, 300) == "nothing new for 3 min 20 s; called stalled at 5 min 00 s"


def _alerts(state: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(alert["rule"], alert["figures"].get("step")) for alert in state["alerts"]]


def _kill_supervisor(run: RunDir) -> None:
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until(lambda: run.state()["state"] == "lost")


def _an_hour_earlier(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        moment = datetime.fromisoformat(row["time"]) - timedelta(hours=1)
        row["time"] = time_text(moment.timestamp())
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
