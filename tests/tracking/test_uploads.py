from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from rl_cli.cli.run_sync import sync_command
from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.files import write_json
from rl_cli.core.processes import python_module
from rl_cli.runs.clean import find_leftovers, remove, whole_run
from rl_cli.runs.resuming.resume import resume_run
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from rl_cli.runs.strays import stray_processes
from rl_cli.runs.supervision import children
from rl_cli.runs.tracking_file import disagreements, in_words, tracking_facts, tracking_notes
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.sync import need_sync, sync_run
from rl_cli.tracking.sync_command import FILES
from rl_cli.tracking.uploader import Uploader
from tests.e2e.cli import command, rl_cli
from tests.processes import with_mark
from tests.runs.kit import identity, replay_config, start, steps, until, until_over, until_step
from tests.tracking.kit import there, tracking, until_left_alone, use, wanted
from tests.wandb_server.faults import Fault
from tests.wandb_server.server import KEY, WandbServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer() as running:
        use(running, monkeypatch, tmp_path)
        yield running


@contextmanager
def impatient() -> Iterator[None]:
    """A sync in this process soon gives up."""
    with pytest.MonkeyPatch.context() as here:
        for name, seconds in (("QUIET_SECONDS", 4), ("VAIN_SECONDS", 4), ("LOOK_EVERY_SECONDS", 1)):
            here.setattr(f"rl_cli.tracking.sync.{name}", seconds)
        yield


def files_there(run: RunDir) -> set[str]:
    """What W&B itself lists."""
    with Asker() as asker:
        question = {"path": f"team/rl-cli/{run.id}", "names": list(FILES)}
        return set(asker.ask("files", question, 60)["files"])


def test_a_run_is_uploaded_live_until_stop_is_pressed_on_its_page(runs: Path, server: WandbServer) -> None:
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("uploaded"), 60)
    assert run.state()["state"] == "running"
    server.only_run().stopped = True
    state = until_over(run, 60)
    assert (state["state"], state["reason"]) == ("stopped", "W&B: stopped there")
    until_left_alone(run)
    assert sorted(there(server)) == sorted(wanted(run))  # each once
    known = tracking(run)
    assert (known["mode"], known["state"], known["uploaded"]) == ("live", "done", known["rows"])
    assert (known["remote_state"], known["remote_step"]) == ("finished", run.last_metrics()["step"])
    assert server.only_run().summary["state"] == "stopped"
    assert run.summary()["wandb_url"] == known["url"] == f"{server.url}/team/rl-cli/runs/{run.id}"
    assert server.unknown == []
    texts = [path.read_bytes() for path in run.path.rglob("*") if path.is_file()]
    assert not any(KEY.encode() in text for text in texts)


def test_a_server_that_refuses_queries_still_says_what_it_has_and_passes_a_stop_on(
    runs: Path, server: WandbServer
) -> None:
    server.refused |= {"GetViewer", "GetDefaultEntity", "RunStoppedStatus", "RunFiles"}
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("uploaded"), 60)
    server.only_run().stopped = True
    state = until_over(run, 60)
    assert (state["state"], state["reason"]) == ("stopped", "W&B: stopped there")
    until_left_alone(run)
    assert sorted(there(server)) == sorted(wanted(run))
    known = tracking(run)
    assert (known["state"], known["uploaded"]) == ("done", known["rows"])
    assert set(server.unknown) == {"RunStoppedStatus", "RunFiles"}


@pytest.mark.parametrize("ill", ["refused", pytest.param("hang", marks=pytest.mark.soak)])
def test_ops_05_a_metrics_service_that_is_down_harms_nothing_and_is_told(
    runs: Path, server: WandbServer, ill: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ill == "refused":
        monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    else:
        server.plant("hang")
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("state") == "unavailable", 60)
    before = run.last_metrics()["step"]
    until_step(run, before + 1)
    assert "metrics unavailable" in rl_cli("runs", "show", run.id).out
    asked = time.monotonic()
    told = rl_cli("tools", "call", "rl_check_status", json.dumps({"run_id": run.id}))
    assert time.monotonic() - asked < 5
    assert json.loads(told.out)["wandb"]["state"] == "unavailable"
    run.request_stop("test", "enough")
    assert until_over(run, 60)["state"] == "stopped"
    until_left_alone(run)
    known, rows = tracking(run), len(run.metrics())
    assert (known["state"], known["uploaded"]) == ("incomplete", 0)
    assert (tracking_facts(run) or {})["hint"].endswith(f"rl-cli runs sync {run.id}")
    if ill == "hang":
        server.heal()
        assert (sync_run(run).uploaded, tracking(run)["state"]) == (rows, "done")
        assert sorted(there(server)) == sorted(wanted(run))


def test_ops_07_crashed_at_wandb_and_alive_here_are_both_told_and_nothing_is_stopped(
    runs: Path, server: WandbServer
) -> None:
    server.crash_after = 1.0
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("uploaded"), 60)
    server.plant(Fault("hang", where="file_stream"))  # no sign of life comes through

    until(lambda: tracking(run).get("remote_state") == "crashed", 60)
    told = rl_cli("tools", "call", "rl_check_status", json.dumps({"run_id": run.id}))
    status = json.loads(told.out)
    (line, *_) = status["wandb"]["disagreements"]
    assert line.startswith("W&B says crashed; here it runs (step ")
    assert status["run"]["state"] == "running"
    trainer, step = identity(run, "trainer"), run.last_metrics()["step"]
    until_step(run, step + 20)
    assert trainer.alive()
    assert run.state()["state"] == "running"
    assert run.stop_requested() is None
    assert "StopRun" not in {operation for _, operation, _ in server.requests}
    server.heal()
    run.request_stop("test", "enough", now=True)
    until_over(run, 60)


def test_a_run_recorded_offline_comes_whole_even_if_its_recorder_was_killed_and_other_figures_are_told(
    runs: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    run = start(runs, [steps(60, every=0.1)], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("rows", 0) >= 10, 60)
    os.kill(identity(run, "recorder").pid, signal.SIGKILL)
    until_over(run, 60)
    until_left_alone(run)
    refused = rl_cli("runs", "sync", run.id)
    assert (refused.code, "no W&B key" in refused.err) == (2, True)
    assert f"rl-cli runs sync {run.id}" in tracking_notes(run)[0]
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    done = rl_cli("runs", "sync", run.id, "--json")
    (synced,) = done.rows()
    assert (done.code, synced["error"], synced["uploaded"]) == (0, None, 60)
    assert set(there(server)) == wanted(run)
    assert server.only_run().state == "finished"
    assert in_words(tracking(run)) == "offline, done: 60 of 60 rows"
    assert rl_cli("runs", "sync").err.startswith("W&B has all")
    server.only_run().rows[-1]["loss"] = 7.5
    write_json(run.path / "tracking.json", {**tracking(run), "state": "incomplete"})
    assert sync_run(run).complete
    (line,) = disagreements(run)
    assert line.startswith("W&B says loss 7.5 at step 60; here it is ")


def test_ops_12_steps_that_are_made_again_after_a_resume_arrive_as_well(
    runs: Path, server: WandbServer
) -> None:
    play = [steps(30, every=0.0), {"checkpoint": 20}, {"kill": 9}, steps(20, step_from=31, every=0.0)]
    run = start(runs, play, tracking={"wandb": "live"})
    until_over(run, 60)
    until_left_alone(run)
    assert (len(there(server)), tracking(run)["state"]) == (30, "done")
    assert resume_run(run).step == 20
    until_over(run, 60)
    until_left_alone(run)
    arrived = there(server)
    assert [step for _, step, _ in arrived] == [*range(1, 31), *range(21, 51)]
    assert set(arrived[30:]) <= wanted(run) <= set(arrived)
    known = tracking(run)
    assert (known["state"], known["remote_step"], len(server.runs)) == ("done", 50, 1)


def test_an_upload_that_brings_nothing_says_so_and_ends_and_one_that_is_killed_leaves_nothing(
    runs: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("WANDB_API_KEY")
    run = start(runs, [steps(20, every=0.0)], tracking={"wandb": "live"})
    until_over(run, 60)
    until_left_alone(run)
    monkeypatch.setenv("WANDB_API_KEY", KEY)
    server.plant(Fault("hang", where="file_stream"))
    with impatient(), pytest.raises(WorkFailed, match=r"^W&B lacks 20 of 20 rows"):
        sync_command([run.id])
    assert "0 of 20 rows, nothing new for" in capsys.readouterr().err
    assert (tracking(run)["uploaded"], there(server)) == (0, [])
    child = subprocess.Popen(command("runs", "sync", run.id), stderr=subprocess.DEVNULL)
    until(lambda: stray_processes(run), 60)
    holders = [one for process in stray_processes(run) for one in psutil.Process(process.pid).children()]
    until(lambda: any("wandb-core" in one.name() for one in psutil.Process(child.pid).children(True)), 60)
    child.kill()
    child.wait()
    until(lambda: not stray_processes(run) and not any(one.is_running() for one in holders), 20)
    server.heal()
    synced = sync_run(run)
    assert (synced.complete, synced.uploaded) == (True, 20)
    assert run.summary()["wandb_url"] == synced.url
    assert "sent later: all 20 rows are there" in (run.path / "events.jsonl").read_text()


def recorded_with_all_rows_there(runs: Path, server: WandbServer) -> RunDir:
    """A run that is over, of which W&B has the rows and no file."""
    server.plant(Fault("status", status=500, where="storage"))
    run = start(runs, [steps(20, every=0.0), {"stall": True}], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("uploaded") == 20)
    run.request_stop("test", "enough", now=True)
    until_over(run, 60)
    os.kill(identity(run, "uploader").pid, signal.SIGKILL)
    until_left_alone(run)
    return run


def recorded_with_nothing_there(runs: Path, server: WandbServer) -> RunDir:
    with pytest.MonkeyPatch.context() as without:
        without.delenv("WANDB_API_KEY")
        run = start(runs, [steps(20, every=0.0)], tracking={"wandb": "live"})
        until_over(run, 60)
        until_left_alone(run)
    server.plant(Fault("status", status=500, where="file_stream"))
    return run


@pytest.mark.parametrize(
    ("recorded", "lacks", "shown"),
    [
        (recorded_with_all_rows_there, "4 files", "20 of 20 rows, without config.yaml"),
        pytest.param(recorded_with_nothing_there, "20 of 20 rows", "0 of 20 rows", marks=pytest.mark.soak),
    ],
)
def test_a_sync_says_in_one_line_what_did_not_arrive_and_ends(
    runs: Path,
    server: WandbServer,
    recorded: Callable[[Path, WandbServer], RunDir],
    lacks: str,
    shown: str,
) -> None:
    run = recorded(runs, server)
    with impatient(), pytest.raises(WorkFailed, match=f"^W&B lacks {lacks}") as told:
        sync_command([run.id])
    assert run.id in told.value.message
    assert told.value.exit_code == 1
    assert str(told.value.hint).endswith(f"rl-cli runs sync {run.id}")
    known = tracking(run)
    assert (known["state"], known["uploaded"]) == ("incomplete", len(there(server)))
    assert files_there(run).isdisjoint(known.get("files_lacking", []))
    assert shown in in_words(known)
    assert run.id in [one.id for one in need_sync(str(runs))[0]]

    server.heal()
    synced = sync_run(run)
    assert (synced.complete, synced.uploaded, list(synced.files_lacking)) == (True, 20, [])
    assert files_there(run) == set(FILES) <= set(server.only_run().files)
    assert sorted(there(server)) == sorted(wanted(run))  # each once
    assert tracking(run)["state"] == "done"
    summary = server.only_run().summary
    assert (summary["global_step"], summary["reward/mean"]) == (20, 0.3)  # no session takes that away


def test_a_resume_does_not_wait_for_wandb_and_others_are_told_what_they_wait_for(
    runs: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = [steps(30, every=0.0), {"checkpoint": 20}, {"kill": 9}, steps(20, step_from=31, every=0.0)]
    server.plant(Fault("status", status=500, where="storage"))  # so that the upload takes its whole minute
    run = start(runs, play, tracking={"wandb": "live"})
    until_over(run, 60)
    uploader = identity(run, "uploader")
    with pytest.raises(BadUsage, match="W&B is taking the rest"):
        whole_run(run)
    lines: list[str] = []
    monkeypatch.setattr("rl_cli.tracking.sync.LOCK_SECONDS", 1.0)
    with pytest.raises(BadUsage, match="W&B is taking the rest"):
        sync_run(run, told=lines.append)
    assert "waiting, W&B is taking the rest" in lines[0]
    assert uploader.alive()

    monkeypatch.setattr("rl_cli.runs.resuming.resume.UPLOAD_SECONDS", 1.0)
    assert resume_run(run).step == 20
    assert not uploader.alive()
    assert not any(event.get("rule") == "wandb" for event in run.events())  # it was not left to its end
    server.heal()
    until_over(run, 60)
    until_left_alone(run)
    assert set(there(server)) >= wanted(run)
    assert tracking(run)["state"] == "done"


def told_in_rounds(
    run: RunDir, server: WandbServer, monkeypatch: pytest.MonkeyPatch, sessions: int
) -> list[str]:
    """States of tracking.json, in order, until `sessions` have begun after the live sync, which fails.

    By an uploader in this process, which has little patience, beside a recorder of its own.
    """
    for name, seconds in (
        ("CHECK_SECONDS", 1.0),
        ("LATE_SECONDS", 10.0),
        ("ROUND_SECONDS", 12.0),
        ("ROUND_EVERY_SECONDS", 5.0),
        ("MOST_ROUND_EVERY_SECONDS", 8.0),
        ("LATE_IN_ROUNDS_SECONDS", 20.0),
    ):
        monkeypatch.setattr(f"rl_cli.tracking.uploader.{name}", seconds)
    states: list[str] = []

    def told(_: RunDir, record: dict[str, Any]) -> None:
        states.append(record["state"])

    monkeypatch.setattr("rl_cli.tracking.uploader.write_tracking", told)
    argv = python_module("rl_cli.tracking.recorder", str(run.path))
    recorder = children.start(argv, run.log_path("wandb"), cwd=run.path, env={})
    with Asker() as asker:
        uploader = Uploader(run, "live", asker)
        thread = threading.Thread(target=uploader.upload)
        thread.start()
        until(lambda: uploader.given_up, 90)
        begun = len(server.sessions())
        until(lambda: len(server.sessions()) >= begun + sessions, 120)
        told_so_far = list(states)
        run.request_stop("test", "enough")
        server.heal()
        thread.join(120)
    assert recorder.ended(30)
    assert sorted(there(server)) == sorted(wanted(run))  # each once
    return told_so_far


@pytest.mark.soak
@pytest.mark.waits
@pytest.mark.parametrize("stays_ill", [True, False])
def test_between_rounds_wandb_that_stays_ill_is_not_told_to_be_well_nor_the_other_way_round(
    runs: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch, stays_ill: bool
) -> None:
    run = start(runs, [steps(100_000, every=0.1)])
    server.plant(Fault("status", status=401, where="file_stream", times=1))  # fatal for the live sync
    if stays_ill:
        server.plant(Fault("status", status=401, where="file_stream"))
    states = told_in_rounds(run, server, monkeypatch, sessions=4)
    changes = [state for state, _ in itertools.groupby(states)]
    assert changes in ([["behind"], ["ok", "behind"]] if stays_ill else [["ok"], ["ok", "behind", "ok"]])


@pytest.mark.soak
@pytest.mark.waits
def test_what_is_killed_is_started_again_and_leaves_nothing(runs: Path, server: WandbServer) -> None:
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "live"})
    mark = identity(run, "supervisor").mark
    until(lambda: there(server), 60)
    first = {name: identity(run, name) for name in ("recorder", "uploader")}
    for known in first.values():
        os.kill(known.pid, signal.SIGKILL)
    until(lambda: all(identity(run, name) != known for name, known in first.items()), 30)
    for known in first.values():
        until(lambda mark=known.mark: with_mark(mark) == [], 30)
    run.request_stop("test", "enough")
    until_over(run, 60)
    until_left_alone(run)
    assert with_mark(mark) == []
    assert set(there(server)) >= wanted(run)
    assert tracking(run)["state"] == "done"


@pytest.mark.soak
@pytest.mark.waits
def test_online_a_session_that_failed_for_good_is_made_up_for_at_the_end(
    runs: Path, server: WandbServer
) -> None:
    server.plant(Fault("status", status=401, where="file_stream", times=1))
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "online"})
    until(lambda: server.faults[0].hits and tracking(run).get("state") == "behind", 60)
    run.request_stop("test", "enough")
    until_over(run, 60)
    until_left_alone(run)
    assert set(there(server)) >= wanted(run)
    assert (tracking(run)["mode"], tracking(run)["state"]) == ("online", "done")


def test_a_wrong_key_is_told_as_such(
    runs: Path, server: WandbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "f" * 40)
    run = start(runs, [steps(5000, every=0.05)], tracking={"wandb": "live"})
    until(lambda: tracking(run).get("state") == "unauthorised", 60)
    run.request_stop("test", "enough")
    until_over(run, 60)
    until_left_alone(run)
    synced = sync_run(run)
    assert (synced.complete, synced.uploaded) == (False, 0)


def test_clean_finds_an_upload_that_was_left(home: Path) -> None:
    run = create_run(replay_config(), home)
    with run.locked() as writer:
        writer.move("failed", "test")
    words = [
        sys.executable,
        "-c",
        "import time; time.sleep(600)",
        "-m",
        "rl_cli.tracking.bound",
        str(run.path),
    ]
    left = children.start(words, run.log_path("wandb-sync"), cwd=run.path, env={})
    until(lambda: stray_processes(run))
    found = [one for one in find_leftovers(home, [run]) if one.kind == "process"]
    assert [one.process and one.process.pid for one in found] == [left.process.pid]
    assert remove(home, found) == []
    assert left.ended(10)
