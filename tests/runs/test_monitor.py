from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from rl_cli.runs.checks.monitor import next_check_seconds, progress, wait_for_check
from rl_cli.runs.follow import Follower
from rl_cli.runs.launch import stop_run
from tests.runs.kit import start, steps, until_over, until_state, until_step

LEARNS = {"reward/mean": [0.2, 0.8]}
FAR = {"first_check_seconds": 3600}
NEAR = {"first_check_seconds": 0.5, "check_every_seconds": 3600}


def test_the_first_due_time_then_the_end_with_everything_shown(runs: Path) -> None:
    run = start(runs, [{"phase": "grpo"}, steps(40, every=0.05, **LEARNS)], NEAR)
    shown: list[dict[str, Any]] = []
    first = asyncio.run(wait_for_check(run, None, shown.append))
    assert first.why == "due"
    assert first.next_check_seconds
    assert 3000 < first.next_check_seconds <= 3600
    assert first.progress.step < 40
    second = asyncio.run(wait_for_check(run, None, shown.append))
    assert (second.why, second.state["state"]) == ("end", "finished")
    rows = [event["row"]["step"] for event in shown if event["kind"] == "metrics"]
    assert rows == sorted(set(rows))  # nothing twice
    assert rows[-1] == 40
    assert {"phase", "metrics", "state"} <= {event["kind"] for event in shown}
    assert asyncio.run(wait_for_check(run)).why == "end"


def test_what_happened_before_a_resume_or_long_ago_is_no_news(runs: Path) -> None:
    run = start(runs, [{"phase": "sft"}, {"phase": "grpo"}, steps(500, every=0.05)], FAR)
    until_state(run, "running")
    until_step(run, 2)
    path = run.path / "events.jsonl"
    old = {"time": "2020-01-01T00:00:00.000Z"}
    planted = [
        {"kind": "evaluation", "which": "final", "accuracy": 0.7, "n": 400, "split": "test"},
        {"kind": "resumed", "attempt": 2, "step": 0, "checkpoint": None, "changes": {}},
        {**old, "kind": "evaluation", "which": "initial", "accuracy": 0.2, "n": 400, "split": "test"},
        {**old, "kind": "phase", "name": "grpo"},
    ]
    path.write_text(path.read_text() + "".join(json.dumps(row) + "\n" for row in planted))
    try:
        seen = [e["kind"] for e in Follower(run, catch_up_seconds=60).news()]
        everything = [e["kind"] for e in Follower(run).news()]
    finally:
        stop_run(run, "user", "done", now=True)
    assert seen == ["state", "resumed", "phase", "metrics"]
    assert everything == ["state", "resumed", "evaluation", "phase", "metrics"]


def test_an_alert_ends_the_wait_once(runs: Path) -> None:
    cut = {"completion/clipped": 0.9}
    run = start(runs, [steps(20, **cut), {"delay": 1}, steps(1, step_from=21, **cut)], FAR)
    outcome = asyncio.run(wait_for_check(run))
    assert outcome.why == "alert"
    assert {"clipped"} <= {alert["rule"] for alert in outcome.alerts}
    assert asyncio.run(wait_for_check(run)).why == "end"


def test_the_person_at_the_keyboard_ends_the_wait_at_once(runs: Path) -> None:
    run = start(runs, [steps(500, every=0.05)], FAR)
    until_state(run, "running")

    async def interrupt_soon() -> str:
        interrupted = asyncio.Event()
        waiting = asyncio.create_task(wait_for_check(run, interrupted))
        await asyncio.sleep(0.3)
        interrupted.set()
        return (await asyncio.wait_for(waiting, 30)).why

    assert asyncio.run(interrupt_soon()) == "interrupted"
    assert run.state()["state"] == "running"
    left = next_check_seconds(run)
    assert left
    assert left > 3000
    stop_run(run, "user", "done", now=True)


def test_of_two_who_wait_one_gets_the_due_time_and_both_the_end(runs: Path) -> None:
    run = start(runs, [steps(40, every=0.05, **LEARNS)], NEAR)

    async def both() -> list[str]:
        outcomes = await asyncio.gather(wait_for_check(run), wait_for_check(run))
        return sorted(outcome.why for outcome in outcomes)

    assert asyncio.run(both()) == ["due", "end"]


def test_progress_in_figures(runs: Path) -> None:
    figures = {"reward/mean": [0.2, 0.4], "seconds/step": 2.0}
    run = start(runs, {"total_steps": 20, "play": [steps(10, **figures)]})
    until_over(run)
    seen = progress(run)
    assert (seen["step"], seen["total_steps"], seen["eta_seconds"]) == (10, 20, 20.0)
    assert (seen["reward_first"], seen["reward_last"], seen["reward_best"]) == (0.2, 0.4, 0.4)
    assert (seen["signal_share"], seen["steps_since_best"]) == (0.5, 0)
