from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.times import time_text
from tests.runs.kit import replay_config


def running_since(home: Path, seconds_ago: float, health: dict[str, Any], **sections: Any) -> RunDir:
    """A run that looks as if it had been running for so long; its supervisor is on another host."""
    run = create_run(replay_config("demo", health, **sections), home)
    changes = {
        "state": "running",
        "running_since": time_text(time.time() - seconds_ago),
        "heartbeat": time_text(time.time() + 3600),
        "supervisor": {"pid": 1, "started": 1.0, "host": "another-host"},
    }
    write_json(run.path / "state.json", {**run.state(), **changes})
    return run


TWICE = {"first_check_seconds": 10, "check_every_seconds": 100}


def test_nothing_is_due_before_the_run_is_running(home: Path) -> None:
    checks = DueChecks(create_run(replay_config("demo", TWICE), home))
    assert checks.next_due() is None
    assert not checks.take_check()


def test_first_then_every(home: Path) -> None:
    assert not DueChecks(running_since(home, 9, TWICE)).take_check()
    checks = DueChecks(running_since(home, 11, TWICE))
    assert checks.take_check()
    assert not checks.take_check()
    due = checks.next_due()
    assert due
    assert 95 < due - time.time() < 100


def test_what_was_missed_counts_as_one(home: Path) -> None:
    checks = DueChecks(running_since(home, 455, TWICE))
    assert checks.take_check()
    assert not checks.take_check()
    due = checks.next_due()
    assert due
    assert 50 < due - time.time() <= 55
    assert len(read_json(checks.path)["log"]) == 1


def test_a_short_budget_brings_the_first_check_forward(home: Path) -> None:
    assert DueChecks(running_since(home, 0, TWICE, budget={"max_hours": 0.01})).first_seconds == 1.8
    assert DueChecks(running_since(home, 0, TWICE, budget={"max_hours": 50})).first_seconds == 10


def take(path: Path, results: Any) -> None:
    results.put(DueChecks(RunDir(path)).take_check())


def test_of_many_processes_one_gets_the_check(home: Path) -> None:
    run = running_since(home, 20, TWICE)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    workers = [context.Process(target=take, args=(run.path, results)) for _ in range(6)]
    for worker in workers:
        worker.start()
    taken = [results.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join()
    assert sorted(taken) == [False] * 5 + [True]


def test_each_alert_is_taken_once(home: Path) -> None:
    run = create_run(replay_config("demo"), home)
    one, two = {"rule": "clipped"}, {"rule": "kl_high"}
    assert DueChecks(run).take_alerts([one]) == [one]
    assert DueChecks(run).take_alerts([one]) == []
    assert DueChecks(run).take_alerts([one, two]) == [two]
