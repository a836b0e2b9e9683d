from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage, RlCliError
from rl_cli.core.files import write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.outcome import text_summary
from rl_cli.runs.store import create_run, find_run, list_runs, runs_folder
from tests.e2e.cli import rl_cli
from tests.runs.kit import replay_config


def test_a_new_run_is_whole_and_gives_its_config_back(home: Path) -> None:
    config = replay_config(grpo={"learning_rate": 3e-5})
    run = create_run(config, home)
    assert run.config() == config
    summary = run.summary()
    assert (summary["state"], summary["total_steps"], summary["last_metrics"]) == ("created", 40, {})
    assert set(summary) == {
        *("id", "state", "reason", "environment", "profile", "backend", "model", "step", "total_steps"),
        *("started", "ended", "wandb_url", "eval", "last_metrics", "alerts", "dir"),
    }
    assert [path.name for path in runs_folder(home).iterdir()] == [run.id]


def test_runs_of_one_second_have_ids_of_their_own_and_are_listed_newest_first(home: Path) -> None:
    made = [create_run(replay_config(environment={"name": name}), home).id for name in ("b", "a", "b", "b")]
    assert len(set(made)) == 4
    assert [run.id for run in list_runs(home)] == made[::-1]
    assert find_run(home, "latest").id == made[-1]


def test_many_can_create_runs_at_once(home: Path) -> None:
    made: list[str] = []
    threads = [
        threading.Thread(target=lambda: made.append(create_run(replay_config(), home).id)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8 == len(list_runs(home))


def test_a_run_is_found_by_a_unique_beginning_and_an_unknown_one_names_the_nearest(home: Path) -> None:
    with pytest.raises(BadUsage, match="no runs yet"):
        find_run(home, "latest")
    run = create_run(replay_config(environment={"name": "alpha"}), home)
    assert find_run(home, run.id[:17]).id == run.id
    other = create_run(replay_config(environment={"name": "beta"}), home)
    with pytest.raises(BadUsage, match="means 2 runs"):
        find_run(home, run.id[:8])
    with pytest.raises(BadUsage, match=f"nearest: {other.id}"):
        find_run(home, other.id + "x")
    with pytest.raises(BadUsage):
        find_run(home, "")


def test_a_home_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(RlCliError, match=str(blocked)):
        create_run(replay_config(), blocked)


def test_a_run_can_be_copied(home: Path, tmp_path: Path) -> None:
    run = create_run(replay_config(), home)
    run.append_metrics("grpo", 1, loss=0.5)
    os.makedirs(tmp_path / "elsewhere" / "runs")
    os.system(f"cp -r {run.path} {tmp_path / 'elsewhere' / 'runs'}")
    copy = find_run(tmp_path / "elsewhere", run.id)
    assert copy.summary()["dir"] == str(tmp_path / "elsewhere" / "runs" / run.id)
    assert copy.last_metrics()["loss"] == 0.5


def test_a_damaged_run_is_listed_and_says_what_is_wrong(home: Path) -> None:
    run, fine = create_run(replay_config(), home), create_run(replay_config(), home)
    (run.path / "state.json").write_text("{")
    found = {r.id: r.summary() for r in list_runs(home)}
    assert found[run.id]["state"] == "lost"
    assert "state.json" in found[run.id]["reason"]
    assert found[fine.id]["state"] == "created"


ODD_STATES: list[dict[str, Any]] = [
    {"supervisor": 5},
    {"supervisor": None},
    {"supervisor": {"pid": 1}},
    {"supervisor": {"pid": -1, "started": 1.0, "host": "here"}},
    {"supervisor": {"pid": "x", "started": None, "host": "here"}},
    {"processes": {"trainer": None}},
    {"processes": []},
    {"verdict": {}},
    {"eval": {"initial": "good"}},
    {"eval": []},
    {"alerts": 7},
    {"alerts": ["nan"]},
    {"created": 5},
    {"heartbeat": {}},
    {"step": "three"},
    {"last_metrics": [1]},
    {"reason": ["why"]},
    {"last_log_lines": 1},
]


def test_a_state_of_an_odd_shape_is_one_damaged_run_and_the_others_are_listed(home: Path) -> None:
    fine = create_run(replay_config(), home)
    live = {**fine.state(), "state": "running", "supervisor": ProcessIdentity.current().to_dict()}
    odd = [
        {"state": "running"},
        {"state": "lost"},
        {"state": ["running"]},
        *({**live, **o} for o in ODD_STATES),
    ]
    damaged = []
    for state in odd:
        run = create_run(replay_config(), home)
        write_json(run.path / "state.json", state)
        damaged.append(run)
    found = {run.id: run.summary() for run in list_runs(home)}
    assert found[fine.id]["state"] == "created"
    for run, state in zip(damaged, odd, strict=True):
        assert (found[run.id]["state"], "damaged" in found[run.id]["reason"]) == ("lost", True), state
        assert "damaged" in text_summary(find_run(home, run.id))
    listed = rl_cli("runs", "list", "--json").rows()
    assert {row["id"] for row in listed} == set(found)


def test_an_end_that_could_only_be_told_is_believed(home: Path) -> None:
    run = create_run(replay_config(), home)
    gone = {**ProcessIdentity.current().to_dict(), "started": 1.0}
    write_json(run.path / "state.json", {**run.state(), "state": "running", "supervisor": gone})
    run.append_event("state", state="failed", reason="the disk is full")
    assert list_runs(home)[0].summary()["reason"] == "the disk is full"
    assert [e["state"] for e in run.events()] == ["failed"]


def test_other_files_of_an_odd_shape_break_no_listing(home: Path) -> None:
    run = create_run(replay_config(), home)
    gone = {**ProcessIdentity.current().to_dict(), "started": 1.0}
    state = {**run.state(), "state": "running", "supervisor": gone, "alerts": [{}]}
    for name in ("exit/trainer.json", "stop.json", "ready/trainer.json", "checks.json"):
        (run.path / name).write_text("{}")
    write_json(run.path / "state.json", state)
    summary = list_runs(home)[0].summary()
    assert (summary["state"], "is gone" in summary["reason"]) == ("lost", True)


def test_figures_that_are_not_finite_leave_valid_json(home: Path) -> None:
    run = create_run(replay_config(), home)
    run.append_metrics("grpo", 3, loss=float("nan"), grad_norm=float("inf"))
    line = (run.path / "metrics.jsonl").read_text()
    row = json.loads(line, parse_constant=lambda text: pytest.fail(f"not JSON: {text}"))
    assert (row["loss"], row["grad_norm"]) == ("NaN", "Infinity")


def test_the_first_stop_request_stays_and_a_later_one_can_only_hurry(home: Path) -> None:
    run = create_run(replay_config(), home)
    assert run.request_stop("user", "enough")
    assert not run.request_stop("assistant", "another reason")
    assert run.request_stop("user", "at once", now=True)
    request = run.stop_requested()
    assert request
    assert (request["by"], request["reason"], request["now"]) == ("user", "enough", True)


def test_a_run_that_nobody_started_is_failed_after_a_while(home: Path) -> None:
    run = create_run(replay_config(), home)
    assert find_run(home, run.id).state()["state"] == "created"
    state = run.state()
    write_json(run.path / "state.json", {**state, "created": "2020-01-01T00:00:00.000Z"})
    assert "never started" in find_run(home, run.id).summary()["reason"]
    assert run.events()[-1]["state"] == "failed"
