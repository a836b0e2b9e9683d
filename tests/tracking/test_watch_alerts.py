"""What the rules say of a watched run does not depend on how many rows come at a time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.files import append_jsonl
from rl_cli.runs.health import AlertGate, Limits, inspect, inspect_stops, stop_signs, view_of
from rl_cli.runs.progress import Progress, Reader
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.synthetic.failures import FAILURES, failing
from rl_cli.runs.watched import watched_run
from rl_cli.tracking import watch_alerts
from rl_cli.tracking.watch_alerts import WatchAlerts

Row = dict[str, Any]
Alert = tuple[str, int | None]
AT = {"time": "2026-03-01T12:00:00.000Z", "phase": "grpo"}
STOPS = ("not_finite", "not_finite_metric", "no_signal", "solved", "target", "plateau")


def watched(home: Path, rows: list[Row], name: str = "one") -> RunDir:
    """A watched run whose rows are all here."""
    run = watched_run(home, f"wandb:team/rl/{name}")
    for i, row in enumerate(rows):
        append_jsonl(run.path / "metrics.jsonl", {**AT, **row, "wandb": {"step": i}})
    return run


def alerts_of(run: RunDir) -> list[Alert]:
    return [(event["rule"], event["figures"].get("step")) for event in run.events()]


def ends(alerts: list[Alert]) -> list[Alert]:
    """Those of the rules that would end a run."""
    return [alert for alert in alerts if alert[0] in STOPS]


def row_by_row(run: RunDir) -> list[Alert]:
    """What is said of a run of this machine, which is judged at every row."""
    gate, progress, said = AlertGate(20), Progress(), list[Alert]()
    for row in run.metrics():
        progress.feed([row], [])
        found = gate.passed(inspect(view_of(progress, Limits())), progress.rows)
        said += [(finding.rule, finding.evidence.get("step")) for finding in found]
    return said


def judged(run: RunDir, together: int | None = None) -> WatchAlerts:
    """Judges what is there: so many rows at a time, or all that the reader gives."""
    alerts, progress, reader = WatchAlerts(run), Progress(), Reader(run)
    alerts.judged = -1
    for rows, events in reader.batches():
        size = together or len(rows) or 1
        for i in range(0, max(1, len(rows)), size):
            left = 0 if together else reader.rows_left
            alerts.feed(progress, rows[i : i + size], events if i == 0 else [], left)
            if together:
                alerts.judge(progress)
    alerts.judge(progress)
    return alerts


@pytest.mark.parametrize("kind", sorted(FAILURES))
def test_rows_that_come_together_are_judged_as_they_would_be_one_by_one(home: Path, kind: str) -> None:
    rows = failing(kind, 1).rows
    said = {name: watched(home, rows, name) for name in ("one", "some", "all")}
    judged(said["one"], 1)
    judged(said["some"], 30)
    judged(said["all"])
    expected = row_by_row(said["one"])
    assert [alerts_of(run) for run in said.values()] == [expected] * 3


def flawed(count: int) -> list[Row]:
    """Rows of a long run in which what ends a run comes and goes, and the entropy is lost for a while."""
    chance = random.Random(0)
    rows = [
        {
            "step": step,
            "reward/mean": 0.5 + chance.gauss(0, 0.05),
            "groups/with_signal": 0.5,
            "entropy": 1.0 + chance.random() / 10,
            "odd": 1.0,
        }
        for step in range(count)
    ]
    for begin, end in ((700, 705), (715, 722), (760, 764), (1500, 2600), (2615, 2620), (2700, 2705)):
        for row in rows[begin:end]:
            row["groups/with_signal"] = 0.0
    for row in rows[5000:6000]:
        row["entropy"] = 0.01
    for step, name in ((3333, "odd"), (4444, "reward/mean")):
        if step < count:
            rows[step][name] = "NaN"
    return rows


def test_a_long_history_is_judged_at_few_points_and_what_would_end_a_run_at_every_row(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = list[int]()
    monkeypatch.setattr(watch_alerts, "inspect", lambda view: checks.append(len(view.grpo)) or inspect(view))
    run = watched(home, flawed(8_000))
    judged(run)
    assert len(checks) < 500, "300 row by row, some hundred before them"
    assert checks[-301:-1] == list(range(7_701, 8_001))
    said = ends(alerts_of(run))
    assert said == ends(row_by_row(run))
    assert [step for rule, step in said if rule == "no_signal"] == [704, 1504, 2704]
    assert [rule for rule, _ in alerts_of(run)].count("entropy_collapse") == 1


def test_rows_that_another_process_has_judged_are_not_judged_again(home: Path) -> None:
    rows = flawed(900)
    run = watched(home, rows[:710])
    first = judged(run)
    assert ends(alerts_of(run)) == [("no_signal", 704)]
    for i in range(710, 900):
        append_jsonl(run.path / "metrics.jsonl", {**AT, **rows[i], "wandb": {"step": i}})
    alerts, progress, reader = WatchAlerts(run), Progress(), Reader(run)
    for some_rows, events in reader.batches():
        alerts.feed(progress, some_rows, events, reader.rows_left)
    assert (alerts.judged, progress.step) == (None, 899), "somebody else judges: rows are only counted"
    alerts, progress, reader = WatchAlerts(run), Progress(), Reader(run)
    alerts.judged = first.judged
    for some_rows, events in reader.batches():
        alerts.feed(progress, some_rows, events, reader.rows_left)
    assert ends(alerts_of(run)) == ends(row_by_row(run)) == [("no_signal", 704)]
    alerts.cut(699)
    assert alerts.judged == 699


def test_the_rules_that_are_asked_at_every_row_find_the_same_while_the_signs_are_equal(home: Path) -> None:
    limits = Limits(target_accuracy=0.9, plateau_patience=3)
    chance, progress = random.Random(1), Progress()
    signs: object = None
    found = list[str]()
    for step in range(3000):
        row = {"phase": "grpo", "step": step, "groups/with_signal": float(chance.random() < 0.3)}
        row |= {"accuracy/validation": chance.random()} if chance.random() < 0.2 else {}
        row |= {f"m{step}": "NaN"} if chance.random() < 0.01 else {}
        progress.feed([row], [])
        now: object = stop_signs(progress, limits)
        rules = [finding.rule for finding in inspect_stops(view_of(progress, limits))]
        assert now != signs or rules == found
        signs, found = now, rules
