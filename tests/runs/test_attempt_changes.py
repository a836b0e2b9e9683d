"""Which steps of a resumed run were trained with which values."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from rl_cli.cli.run_details import show_run
from rl_cli.core.files import write_json
from rl_cli.runs.attempt_changes import changes_in_force, how_to_repeat
from rl_cli.runs.outcome import outcome_of
from rl_cli.runs.reports.compare import compare
from rl_cli.runs.reports.report import write_reports
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from tests.runs.kit import replay_config

RATE = "grpo.learning_rate"


def resumed(home: Path, *resumes: tuple[int, dict[str, Any]]) -> RunDir:
    """A trained run that was resumed from these steps with these changes so far."""
    run = create_run(replay_config(backend={"name": "trl"}, grpo={"learning_rate": 1e-4, "steps": 40}), home)
    for number, (step, changes) in enumerate(resumes, 2):
        run.append_event("resumed", attempt=number, step=step, checkpoint=None, changes=changes)
    attempts = {"attempt": len(resumes) + 1, "seconds_before": 60.0}
    times = {"started": "2026-03-01T12:00:00.000Z", "ended": "2026-03-01T12:02:00.000Z"}
    first = {"started": "2026-03-01T10:00:00.000Z"}
    (run.path / "attempts" / "1").mkdir(parents=True)
    write_json(run.path / "attempts" / "1" / "state.json", first)
    state = {**run.state(), **attempts, **times, "state": "finished", "step": 40}
    write_json(run.path / "state.json", state)
    if resumes:
        record = {"attempt": 2, "step": resumes[-1][0], "checkpoint": None, "changes": resumes[-1][1]}
        write_json(run.path / "resume.json", record)
    return run


@pytest.mark.parametrize(
    ("resumes", "told"),
    [
        ([(10, {})], []),
        ([(10, {RATE: 2e-4})], ["0.0001 -> 0.0002 after step 10"]),
        ([(0, {RATE: 2e-4})], ["0.0001 -> 0.0002 from the beginning"]),
        ([(10, {RATE: 2e-4}), (20, {RATE: 2e-4})], ["0.0001 -> 0.0002 after step 10"]),
        ([(10, {RATE: 2e-4}), (5, {RATE: 3e-4})], ["0.0001 -> 0.0003 after step 5"]),
        (
            [(10, {RATE: 2e-4}), (20, {RATE: 3e-4})],
            ["0.0001 -> 0.0002 after step 10", "0.0002 -> 0.0003 after step 20"],
        ),
        ([(20, {RATE: 2e-4}), (10, {RATE: 1e-4})], []),
    ],
)
def test_what_the_steps_were_trained_with(home: Path, resumes: list[Any], told: list[str]) -> None:
    run = resumed(home, *resumes)
    assert [change.in_words() for change in changes_in_force(run)] == [f"{RATE} {line}" for line in told]


def test_the_report_and_the_comparison_name_both_values_and_how_to_repeat_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, plain = resumed(home, (10, {RATE: 2e-4})), resumed(home)
    text = write_reports(run, ["md"])[0].read_text("utf-8")
    assert f"{RATE} 0.0001 -> 0.0002 after step 10" in text.replace("\\", "")
    assert "0.0001 up to step 10" in text
    repeat = how_to_repeat(run, changes_in_force(run), 40)
    start, then = repeat.split("; when that is finished: ")
    assert start == f"rl-cli runs start --config {run.path / 'run.yaml'} --set grpo.steps=10"
    assert then == "rl-cli runs resume latest --set grpo.learning_rate=0.0002 --set grpo.steps=40"
    compared = compare([plain, run])
    assert compared["config"][RATE] == [1e-4, "0.0001 -> 0.0002 after step 10"]
    assert compared["notes"][-1].startswith(f"{run.id} was resumed with another config: {RATE}")
    show_run(run, as_json=False, plot=False)
    assert "resumed after step 10; changed: grpo.learning_rate" in capsys.readouterr().out


def test_a_resumed_run_started_with_its_first_attempt_and_took_what_all_took(home: Path) -> None:
    run = resumed(home, (10, {}))
    assert run.summary()["started"] == "2026-03-01T10:00:00.000Z"
    assert "3 min 00 s" in outcome_of(run)


def test_people_read_words_and_the_time_of_their_wall(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        show_run(resumed(home, (10, {})), as_json=False, plot=False)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()
    told = capsys.readouterr().out
    for words in ("40 of 40", "2026-03-01 18:00:00 CST", "attempts", "folder"):
        assert words in told, words
    for key in ("total_steps", "wandb_url", "T10:00"):
        assert key not in told, key
