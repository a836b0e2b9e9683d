from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.processes import python_module
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from rl_cli.tracking.rows import as_logged, key_of, key_of_logged
from tests.runs.kit import STEP, replay_config, start, steps, until_over
from tests.tracking.kit import tracking, until_left_alone


@pytest.fixture(autouse=True)
def no_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def wandb_events(run: RunDir) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["kind"] == "wandb"]


def test_without_a_key_every_row_is_kept_offline(runs: Path) -> None:
    play = [steps(3, every=0.0), {"step": 1, "phase": "sft", "loss": 2.0}, {"nan": "loss"}, {"stall": True}]
    run = start(runs, play, tracking={"wandb": "auto"})
    until_over(run)
    until_left_alone(run)
    (event,) = wandb_events(run)
    assert (event["mode"], event["url"]) == ("offline", None)
    kept = next(Path(event["dir"]).glob("*.wandb")).read_bytes()  # records of names and JSON, in the clear
    assert kept.count(b"groups/with_signal") >= 3
    assert b"sft/loss" in kept
    assert not any(alert["rule"] == "wandb" for alert in run.summary()["alerts"])
    assert (tracking(run)["mode"], tracking(run)["state"]) == ("offline", "recorded")


def test_off_starts_nothing(runs: Path) -> None:
    run = start(runs, [steps(2)], tracking={"wandb": "off"})
    until_over(run)
    assert set(run.state()["processes"]) == {"trainer"}
    assert not run.log_path("wandb").exists()


def test_a_missing_wandb_is_told_and_harms_nothing(home: Path, tmp_path: Path) -> None:
    run = create_run(replay_config("demo", tracking={"wandb": "auto"}), home)
    run.append_metrics("grpo", 1, **STEP)
    recorder = "from rl_cli.tracking.recorder import main; main(sys.argv[1:])"
    code = f"import sys; sys.modules['wandb'] = None; {recorder}"
    argv = [*python_module("x")[:2], "-c", code, str(run.path)]
    subprocess.run(argv, check=True, timeout=60, cwd=tmp_path)
    assert "W&B gets nothing of this run" in run.events()[-1]["message"]


def test_rows_carry_their_axis_their_time_and_numbers_only() -> None:
    time = "2026-01-02T03:04:05.678Z"
    row = {"time": time, "phase": "grpo", "step": 3, "loss": "NaN", "note": "text", "ok": True}
    logged = as_logged(row)
    assert set(logged) == {"global_step", "loss", "time", "_timestamp"}
    assert logged["loss"] != logged["loss"]
    assert as_logged({"phase": "sft", "step": 2, "loss": 1.0}) == {"sft/step": 2, "sft/loss": 1.0}
    sft = {"time": time, "phase": "sft", "step": 2, "loss": 1.0}
    assert key_of(row) == key_of_logged(logged) == ("global_step", 3, logged["time"])
    assert key_of(sft) == key_of_logged(as_logged(sft)) == ("sft/step", 2, logged["time"])
    assert key_of({"phase": "other", "step": 1, "time": time}) is None
    assert key_of_logged({"_step": 1, "loss": 2.0}) is None
