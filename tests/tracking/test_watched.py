"""Runs that somebody else started, followed through the real SDK."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.core.files import read_jsonl
from rl_cli.runs.clean import find_leftovers, whole_run
from rl_cli.runs.launch import stop_run
from rl_cli.runs.progress import progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import find_run, list_runs
from rl_cli.runs.tracking_file import disagreements
from rl_cli.runs.watched import wandb_path
from rl_cli.tracking.errors import WandbError
from rl_cli.tracking.watcher import refresh, watched, watching
from tests.runs.kit import until
from tests.tracking.kit import Kept
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, log, plant_run

NAME = "wandb:team/rl/abc123"
OFTEN = 0.3
"""Seconds between two looks."""


@pytest.fixture(autouse=True)
def one_child(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl_cli.tracking.watcher.Asker", lambda: kept)


def until_step(run: RunDir, step: int) -> None:
    until(lambda: run.state()["step"] >= step, 60)


def until_event(run: RunDir, text: str) -> dict[str, Any]:
    def found() -> dict[str, Any] | None:
        return next((e for e in run.events() if text in str(e.get("message"))), None)

    return dict(until(found, 60))


def best_of(run: RunDir) -> tuple[int, float] | None:
    return progress_of(run).grpo["reward/mean"].best()


def test_a_run_of_somebody_else_is_followed_to_its_end(server: WandbServer, home: Path) -> None:
    record = plant_run(server, curve(30), config={"max_steps": {"value": 40}, "model_name": {"value": "m"}})
    run = find_run(home, NAME)
    with watched(run, OFTEN):
        until_step(run, 29)
        assert run.state()["state"] == "running"
        with pytest.raises(BadUsage, match="wandb_stop_run"):
            stop_run(run, "assistant", "no", False)
        with server.refuse():
            until_event(run, "cannot be asked")
            assert run.state()["state"] == "running"
        log(server, record, curve(10, start=30))
        record.state = "finished"
        until(lambda: run.state()["state"] == "finished", 60)
    assert [row["step"] for row in run.metrics()] == list(range(40))
    until_event(run, "answers again")
    summary = run.summary()
    assert (summary["step"], summary["total_steps"], summary["model"]) == (39, 40, "m")
    assert summary["wandb_url"] == f"{server.url}/team/rl/runs/abc123"
    assert (run.path / "report.html").exists()
    assert [one.id for one in list_runs(home)] == ["wandb-team-rl-abc123"]
    log(server, record, curve(3, start=40))
    record.state = "running"
    asyncio.run(looked_at_once_it_is_watched(run))
    assert [row["step"] for row in run.metrics()] == list(range(43))


async def looked_at_once_it_is_watched(run: RunDir) -> None:
    """A run that was over goes on at W&B: nobody who waits for its end is told of the old one."""
    async with watching(run, OFTEN):
        assert (run.state()["state"], run.state()["step"]) == ("running", 42)
        with pytest.raises(BadUsage, match="cannot be removed: it is running"):
            whole_run(run)
        assert list(find_leftovers(run.home, [run])) == []
    with pytest.raises(BadUsage, match="asks W&B"):
        whole_run(run)


def test_ops_07_crashed_at_wandb_while_rows_come_is_told_with_both_facts(
    server: WandbServer, home: Path
) -> None:
    record = plant_run(server, curve(10), state="crashed")
    run = find_run(home, NAME)
    with watched(run, OFTEN):
        until(lambda: run.state()["state"] == "lost", 60)
        assert "W&B says crashed" in run.state()["reason"]
        log(server, record, curve(10, start=10))
        until(lambda: run.state()["state"] == "running", 60)
        alert = until_event(run, "rows still come")
        assert "W&B says crashed" in alert["message"]
        assert any("W&B says crashed" in sentence for sentence in disagreements(run))
    assert not record.stopped
    assert [operation for _, operation, _ in server.requests if operation == "StopRun"] == []


def test_ops_09_a_run_that_begins_at_step_5000_is_found(server: WandbServer, home: Path) -> None:
    plant_run(server, curve(20, start=5000, _unused=0), state="finished")
    server.only_run().history[:] = [
        {**row, "_step": 5000 + i} for i, row in enumerate(server.only_run().history)
    ]
    run = find_run(home, NAME)
    assert refresh(run) is None
    assert run.state()["step"] == 5019
    assert len(run.metrics()) == 20


def test_ops_09_an_empty_history_with_a_full_summary_is_flagged(server: WandbServer, home: Path) -> None:
    plant_run(server, summary={"_step": 5200, "reward": 0.7})
    run = find_run(home, NAME)
    assert refresh(run) is None
    (alert,) = run.summary()["alerts"]
    assert "no history" in alert["message"]
    assert "reward 0.7" in alert["message"]
    assert run.state()["step"] == 5200


def test_ops_10_the_best_step_is_the_same_every_time(server: WandbServer, home: Path, kept: Kept) -> None:
    """The full size, 100,000 steps, is in tests/soak."""
    steps = curve(1200)
    steps[777]["train/reward"] = 9.0
    plant_run(server, steps, state="finished")
    run = find_run(home, NAME)
    refresh(run)
    assert best_of(run) == (777, 9.0)
    question = {"path": "team/rl/abc123", "keys": ["train/reward"]}
    answers = [kept.ask("history", question, 60) for _ in range(3)]
    assert [(one["exact"], one["metrics"]["train/reward"]["max"]) for one in answers] == [
        (True, [777, 9.0])
    ] * 3


def test_what_came_and_went_between_two_looks_is_an_alert(server: WandbServer, home: Path) -> None:
    record = plant_run(server, curve(20, frac_reward_zero_std=0.5), state="running")
    run = find_run(home, NAME)
    with watched(run, OFTEN):
        until_step(run, 19)
        gone = [*curve(5, start=20, frac_reward_zero_std=1.0), *curve(15, start=25, frac_reward_zero_std=0.5)]
        log(server, record, gone)
        until_step(run, 39)
        assert until_event(run, "no group carried signal")["figures"]["step"] == 24
    assert refresh(run) is None
    assert [alert["rule"] for alert in run.summary()["alerts"]].count("no_signal") == 1


@pytest.mark.parametrize(("count", "figures", "pages"), [(3100, 0, range(4, 6)), (600, 450, range(15, 22))])
def test_a_page_of_a_history_has_as_many_rows_as_their_length_allows(
    server: WandbServer, home: Path, count: int, figures: int, pages: range
) -> None:
    wide = {f"layer/{i}": i / 7 for i in range(figures)}
    plant_run(server, curve(count, **wide), state="finished")
    run = find_run(home, NAME)
    assert refresh(run) is None
    assert [row["step"] for row in run.metrics()] == list(range(count))
    assert [operation for _, operation, _ in server.requests].count("HistoryPage") in pages


def test_a_run_that_is_not_there_leaves_no_directory(
    server: WandbServer, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_run(server, curve(3))
    with pytest.raises(WandbError, match="nearest: abc123"):
        refresh(find_run(home, "wandb:team/rl/abc124"))
    assert list_runs(home) == []
    for wrong in (
        "wandb:abc",
        "wandb:a/b",
        "wandb:a/b/c/d",
        "wandb:a/../c d",
        "wandb:a/b/\udcc3",
        "wandb://x",
    ):
        with pytest.raises(BadUsage, match="ENTITY/PROJECT/RUN"):
            find_run(home, wrong)
    assert wandb_path(f"{server.url}/team/rl/runs/abc123?nw=1") == "team/rl/abc123"
    with pytest.raises(BadUsage, match=r"that page is on wandb\.ai, and W&B is asked at"):
        wandb_path("wandb:https://wandb.ai/team/rl/runs/abc123")
    monkeypatch.setenv("WANDB_BASE_URL", "https://api.wandb.ai")
    assert wandb_path("https://wandb.ai/team/rl/runs/abc123?nw=1") == "team/rl/abc123"


def test_a_history_that_was_rewound_is_read_anew(server: WandbServer, home: Path) -> None:
    record = plant_run(server, curve(20))
    run = find_run(home, NAME)
    with watched(run, OFTEN):
        until_step(run, 19)
        with server.lock:
            del record.history[11:]
        log(server, record, [{**row, "train/reward": 5.0} for row in curve(3, start=11)])
        until(lambda: best_of(run) == (11, 5.0), 60)
    assert progress_of(run).step == 13


def test_a_history_that_shrinks_loses_no_row_and_raises_no_alert(server: WandbServer, home: Path) -> None:
    record = plant_run(server, curve(10), summary={"reward": 0.5})
    run = find_run(home, NAME)
    refresh(run)
    with server.lock:
        del record.history[3:]
        record.state = "failed"
    for _ in range(2):
        assert refresh(run) is None
    assert run.state()["state"] == "failed"
    assert len(run.metrics()) == 3
    assert [row["step"] for row in read_jsonl(run.path / "replaced.jsonl")] == list(range(10))
    assert len([event for event in run.events() if "replaced.jsonl" in str(event.get("message"))]) == 1
    with server.lock:
        record.history.clear()
    refresh(run)
    assert len(run.metrics()) == 3
    assert run.summary()["alerts"] == []


def test_a_long_silence_is_told_once_with_its_end_whatever_each_look_meets(
    server: WandbServer, home: Path
) -> None:
    record = plant_run(server, curve(5))
    run = find_run(home, NAME)

    def told(text: str) -> int:
        return sum(text in str(event.get("message")) for event in run.events())

    with watched(run, OFTEN):
        until_step(run, 4)
        for outages, silence in enumerate(("500", "reset"), start=1):
            for ill in (silence, silence, "malformed", "401"):
                server.heal()
                fault = server.plant(ill)
                until(lambda fault=fault: fault.hits, 90)
            until(lambda outages=outages: told("cannot be asked") == outages)
            server.heal()
            until(lambda outages=outages: told("answers again") == outages, 90)
        log(server, record, curve(1, start=5))
        until_step(run, 5)
    assert (told("cannot be asked"), run.state()["state"]) == (2, "running")


def test_sch_07_two_processes_add_a_hundred_watched_runs_each(home: Path) -> None:
    code = (
        "import sys; from rl_cli.runs.store import find_run\n"
        "for i in range(int(sys.argv[2]), int(sys.argv[3])): find_run(sys.argv[1], f'wandb:team/rl/r{i}')\n"
    )

    def adding(start: int, stop: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-P", "-c", code, str(home), str(start), str(stop)])

    killed, other = adding(0, 100), adding(100, 200)
    until(lambda: (home / "runs").is_dir() and len(list((home / "runs").glob("wandb-*"))) > 20)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    again = adding(0, 100)
    assert (again.wait(60), other.wait(60)) == (0, 0)
    runs = list_runs(home)
    assert len({run.id for run in runs}) == len(runs) == 200
    assert all(run.state()["state"] == "created" for run in runs)
    assert all(run.config().backend.run for run in runs[::20])
