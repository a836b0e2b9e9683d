"""Runs that are over go on from their last good checkpoint, any number of times."""

from __future__ import annotations

import json
import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage, Refused, RlCliError
from rl_cli.core.files import read_jsonl
from rl_cli.runs import checkpoints
from rl_cli.runs.launch import stop_run
from rl_cli.runs.progress import Progress, Reader, progress_of
from rl_cli.runs.resuming.plan import last_good, make_plan
from rl_cli.runs.resuming.resume import resume_run
from rl_cli.runs.store import RunDir
from rl_cli.spending.ledger import Ledger
from tests.runs.kit import identity, start, steps, until, until_over, until_state, until_step


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
    {"sample": {"prompt": "2 + 2", "completion": "4", "reward": 1.0}},
    {"checkpoint": 5},
    {"kill": 9},
    steps(4, 0, step_from=7),
    {"checkpoint": 10},
    steps(3, 0, step_from=11),
    {"kill": 9},
    steps(3, 0, step_from=14),
    {"checkpoint": 15},
    {"kill": 9},
    steps(4, 0, step_from=17),
    {"evaluation": {"which": "final", "accuracy": 0.6}},
]


def loaded(run: RunDir) -> list[str]:
    """What the trainers of all attempts say that they have loaded."""
    lines = run.log_path("trainer").read_text().splitlines()
    return [line for line in lines if line.startswith("loaded ")]


def test_ops_18_save_and_resume_work_any_number_of_times(runs: Path):
    """And the curve of a run that is killed three times has no gap and no double."""
    run = start(runs, THREE_KILLS)
    begun_at: list[int] = []
    for attempt in (1, 2, 3):
        state = until_over(run)
        assert (state["state"], state.get("attempt") or 1) == ("failed", attempt)
        assert "SIGKILL" in state["reason"]
        resumed = resume_run(run)
        assert not resumed.attached
        begun_at.append(resumed.step)
        assert all(one.damage() is None for one in checkpoints.all_checkpoints(run.path))
        assert resumed.checkpoint == checkpoints.all_checkpoints(run.path)[-1].path
    state = until_over(run)
    assert (state["state"], state["attempt"], begun_at) == ("finished", 4, [5, 10, 15])
    assert loaded(run) == [f"loaded step-{step}: written at step {step}" for step in begun_at]
    assert [row["phase"] for row in run.metrics()] == ["sft"] + ["grpo"] * 20
    assert grpo_steps(run) == list(range(1, 21))
    assert [event["step"] for event in kinds(run, "resumed")] == begun_at
    assert len(kinds(run, "warm_start")) == 1
    assert (state["eval"]["initial"], state["eval"]["final"]) == (0.2, 0.6)
    kept = {n: run.path / "attempts" / str(n) for n in (1, 2, 3)}
    moved = [[json.loads(line)["step"] for line in (kept[n] / "metrics.jsonl").open()] for n in kept]
    assert moved == [[6], [11, 12, 13], [16]]
    assert json.loads((kept[2] / "state.json").read_text())["attempt"] == 2
    assert state["seconds_before"] > 0


def test_ops_12_after_a_resume_the_step_that_is_shown_rises_again(runs: Path):
    play = [steps(100, 0), {"checkpoint": 100}, steps(30, 0.1, step_from=101), {"kill": 9}]
    run = start(runs, [*play, steps(20, 0, step_from=131)])
    assert until_over(run)["step"] == 130
    progress, reader = Progress(150), Reader(run)

    def shown() -> int:
        for rows, events in reader.batches():
            progress.feed(rows, events)
        return progress.step

    assert shown() == 130
    assert resume_run(run).step == 100
    seen = [shown()]
    while run.state()["state"] not in ("finished", "failed"):
        seen.append(shown())
    until_over(run)
    seen.append(shown())
    assert seen == sorted(seen)
    assert seen[0] in (100, 101)
    assert next(step for step in seen if step > 100) <= 102
    assert seen[-1] == run.summary()["step"] == 150
    assert grpo_steps(run) == list(range(1, 151))


def test_ops_16_a_run_that_became_nan_goes_on_from_before_that(runs: Path):
    play = [steps(5, 0), {"checkpoint": 5}, steps(1, 0, step_from=6), {"nan": "loss"}, {"stall": True}]
    run = start(runs, play)
    state = until_over(run)
    assert (state["state"], state["rule"]) == ("failed", "not_finite")
    assert state["reason"] == "diverged: loss is NaN at grpo step 7"
    folder = run.path / "checkpoints" / ".writing"
    folder.mkdir()
    checkpoints.place(run.path, 7, folder)
    assert resume_run(run).step == 5
    assert json.loads((run.path / "resume.json").read_text())["checkpoint"] == "checkpoints/step-5"
    [event] = kinds(run, "resumed")
    assert (
        event["notes"][0] == "the checkpoint of step 7 cannot be used: the figures of step 7 are no numbers"
    )
    assert "grpo.learning_rate" in event["notes"][1]
    until_step(run, 7)
    assert grpo_steps(run) == list(range(1, 8))
    assert not (run.path / "checkpoints" / "step-7").exists()
    stop_run(run, "user", "enough", now=True)


def test_ops_16_a_checkpoint_that_was_due_at_the_step_that_is_nan_is_not_resumed_from(runs: Path):
    """Each step saves; that of step 7 is written before anybody has seen its figures."""
    saved = [entry for step in range(1, 7) for entry in (steps(1, step_from=step), {"checkpoint": step})]
    after = [{"nan": "loss"}, {"checkpoint": 7}, {"delay": 3}, steps(2, 0, step_from=8), {"checkpoint": 9}]
    run = start(runs, [{"delay": 5}, *saved, *after])
    until_state(run, "running")
    supervisor = identity(run, "supervisor")
    os.kill(supervisor.pid, signal.SIGSTOP)
    until((run.path / "checkpoints" / "step-7").is_dir)
    os.kill(supervisor.pid, signal.SIGCONT)
    state = until_over(run)
    assert (state["state"], state["rule"]) == ("failed", "not_finite")
    assert state["reason"] == "diverged: loss is NaN at grpo step 7"
    newest = checkpoints.all_checkpoints(run.path)[-1]
    assert (newest.step, newest.damage()) == (7, None)
    resumed = resume_run(run)
    assert (resumed.step, resumed.checkpoint) == (6, run.path / "checkpoints" / "step-6")
    assert resumed.notes[0] == "the checkpoint of step 7 cannot be used: the figures of step 7 are no numbers"
    assert until_over(run)["state"] == "finished"
    assert loaded(run) == ["loaded step-6: written at step 6"]
    assert grpo_steps(run) == list(range(1, 10))
    assert all(isinstance(row["loss"], float) for row in run.metrics())


def test_ops_19_each_batch_is_in_the_figures_once_whatever_was_done_of_it_before(runs: Path):
    """Ten batches, saved after five, killed after seven: those of the attempt that was cut are set apart."""

    def batches(first: int, last: int) -> dict[str, Any]:
        return steps(last - first + 1, 0, step_from=first, batch=[first, last])

    def sample() -> dict[str, Any]:
        return {"sample": {"prompt": "2 + 2", "completion": "4", "reward": 1.0}}

    play = [
        batches(1, 5),
        sample(),
        {"checkpoint": 5},
        batches(6, 7),
        sample(),
        {"kill": 9},
        batches(8, 10),
        sample(),
    ]
    run = start(runs, play)
    assert until_over(run)["state"] == "failed"
    killed = run.metrics()
    assert [row["batch"] for row in killed] == list(range(1, 8))
    assert resume_run(run).step == 5
    assert until_over(run)["state"] == "finished"
    rows, cut = run.metrics(), [*read_jsonl(run.path / "attempts" / "1" / "metrics.jsonl")]
    assert [row["batch"] for row in rows] == [row["step"] for row in rows] == list(range(1, 11))
    assert rows[:5] == killed[:5]
    assert cut == killed[5:]
    [event] = kinds(run, "resumed")
    assert [row["batch"] for row in rows if row["time"] > event["time"]] == list(range(6, 11))
    assert [row["step"] for row in run.samples()] == [5, 7, 10]
    assert [row["step"] for row in read_jsonl(run.path / "attempts" / "1" / "samples.jsonl")] == [7]
    assert loaded(run) == ["loaded step-5: written at step 5"]
    assert list(progress_of(run).grpo["batch"].values) == list(range(1, 11))


def test_a_damaged_checkpoint_is_passed_over_and_that_is_said(runs: Path):
    run = start(runs, [steps(4, 0), {"checkpoint": 2}, {"checkpoint": 4}, {"exit": 3}])
    until_over(run)
    (run.path / "checkpoints/step-4/replay.json").write_text("{")
    (found, notes) = last_good(run)
    assert found == (2, run.path / "checkpoints/step-2")
    assert "step 4 cannot be used: replay.json has 1 bytes" in notes[0]
    (run.path / "checkpoints/step-2/replay.json").unlink()
    resumed = resume_run(run)
    assert (resumed.step, resumed.checkpoint, len(resumed.notes)) == (0, None, 2)
    assert "begins at the beginning" in resumed.sentence()
    until_over(run)
    assert grpo_steps(run) == [1, 2, 3, 4]


def test_of_two_resumes_at_once_one_wins(runs: Path):
    run = start(runs, [steps(2, 0), {"checkpoint": 2}, {"exit": 3}, {"delay": 20}])
    until_over(run)

    def resume() -> str:
        try:
            return f"attempt {resume_run(RunDir(run.path)).attempt}"
        except BadUsage as error:
            return str(error)

    with ThreadPoolExecutor(3) as pool:
        said = list(pool.map(lambda _: resume(), range(3)))
    assert said.count("attempt 2") == 1
    assert sum("goes on already" in line for line in said) == 2
    assert len(kinds(run, "resumed")) == 1
    stop_run(run, "user", "enough", now=True)


def test_what_cannot_be_resumed_says_why(runs: Path):
    run = start(runs, [steps(3, 0), {"checkpoint": 3}, {"delay": 30}, {"exit": 3}])
    until_step(run, 3)
    with pytest.raises(BadUsage, match="goes on already"):
        resume_run(run)
    stop_run(run, "user", "enough", now=True)
    before = (run.path / "state.json").read_bytes()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"grpo.batch_size": 8}, "grpo.batch_size cannot change .* which tasks each step takes"),
        ({"seed": 3, "model.name": "x"}, "seed cannot change .*; model.name cannot change"),
        ({"environment.options.terms": 3}, "the tasks and their order"),
        ({"grpo": {"max_new_tokens": 4}}, "grpo.max_new_tokens cannot change"),
        ({"grpo.stepps": 3}, "did you mean"),
        ({"grpo.steps": 2}, "less than the 3 steps that are done"),
        ({"grpo.learning_rate": -1}, "grpo.learning_rate"),
    ]
    for changes, told in cases:
        with pytest.raises(BadUsage, match=told):
            resume_run(run, changes)
    assert (run.path / "state.json").read_bytes() == before
    assert not (run.path / "attempts").exists()


def test_a_replay_that_was_played_to_its_end_is_not_resumed(runs: Path):
    run = start(runs, [steps(3, 0)])
    until_over(run)
    with pytest.raises(BadUsage, match="played to its end"):
        resume_run(run, {"grpo.steps": 100})


def test_a_run_that_reached_its_target_goes_on_only_without_it(runs: Path):
    run = start(runs, [steps(2, 0), {"checkpoint": 2}, {"exit": 3}])
    until_over(run)
    with run.locked(timeout=10) as writer:
        writer.update(state="finished", rule="target", reason="the target is reached")
    with pytest.raises(BadUsage, match=r"the target is reached .*health\.target_accuracy=null"):
        resume_run(run)
    plan, _ = make_plan(run, run.state(), {"health.target_accuracy": 0.9})
    assert plan.step == 2


def test_changes_add_up_and_the_config_shows_them(runs: Path):
    run = start(runs, [steps(2, 0), {"checkpoint": 2}, {"exit": 3}, {"exit": 3}, {"exit": 3}])
    text = (run.path / "run.yaml").read_text()
    until_over(run)
    resume_run(run, {"grpo.learning_rate": 1e-5, "health.stall_seconds": 77.0})
    until_over(run)
    resume_run(run, {"grpo.learning_rate": 2e-5})
    until_over(run)
    config = run.config()
    assert (config.grpo.learning_rate, config.health.stall_seconds) == (2e-5, 77.0)
    assert kinds(run, "resumed")[1]["changes"] == {"grpo.learning_rate": 2e-5, "health.stall_seconds": 77.0}
    assert (run.path / "run.yaml").read_text() == text
    (run.path / "resume.json").write_text("{")
    with pytest.raises(RlCliError, match="is damaged"):
        run.config()
    resume_run(run)
    until_over(run)
    assert run.config() == config


def test_the_budget_counts_what_earlier_attempts_took(runs: Path):
    run = start(runs, [steps(2, 0), {"checkpoint": 2}, {"exit": 3}, {"exit": 3}])
    until_over(run)
    with run.locked(timeout=10) as writer:
        writer.update(seconds_before=7200.0)
        state = writer.state
    with pytest.raises(Refused, match=r"used up budget\.max_hours"):
        resume_run(run, {"budget.max_hours": 2.0})
    resume_run(run, {"budget.max_hours": 3.0})
    after = until_over(run)
    assert after["seconds_before"] > 7200
    assert after["spending"]["entry"] != state["spending"]["entry"]
    with run.locked(timeout=10), Ledger(runs).reading() as books:  # its supervisor has done all
        entries = [books.get(s["spending"]["entry"]) for s in (state, after)]
    assert [entry.run for entry in entries if entry] == [run.id, run.id]
    assert all(entry and entry.state != "reserved" for entry in entries)


def test_a_copied_run_is_resumed_where_it_is_now(runs: Path):
    """Also one that fell over before its first checkpoint."""
    run = start(runs, [steps(2, 0), {"exit": 3}, steps(2, 0, step_from=3)])
    until_over(run)
    copy = RunDir(run.path.with_name("copied"))
    shutil.copytree(run.path, copy.path)
    assert resume_run(copy).step == 0
    assert until_over(copy)["state"] == "finished"
    assert grpo_steps(copy) == [1, 2, 3, 4]
    assert grpo_steps(run) == [1, 2]
    plan, _ = make_plan(run, run.state(), {})
    assert plan.attempt == 2


def test_a_trainer_that_still_runs_is_not_started_again(runs: Path):
    run = start(runs, [steps(200, 0.2)])
    until_step(run, 2)
    trainer = identity(run, "trainer")
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until_state(run, "lost")
    with pytest.raises(BadUsage, match="still runs, so nothing can be changed"):
        resume_run(run, {"grpo.learning_rate": 1e-5})
    resumed = resume_run(run)
    assert (resumed.attached, resumed.attempt) == (True, 1)
    assert identity(run, "trainer") == trainer
    assert trainer.alive()
    assert until_state(run, "running")
    assert kinds(run, "resumed") == []
    assert stop_run(run, "user", "enough", now=True)["state"] == "stopped"
