"""`runs clean` shows first, removes what it knows, and touches nothing that goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_cli.core.files import write_json
from rl_cli.core.processes import TREE, ProcessIdentity, marked_processes
from rl_cli.runs.store import RunDir, find_run
from tests.e2e.cli import rl_cli
from tests.e2e.faults import bystander, edit_state
from tests.runs.kit import end_all, identity, start, steps, until, until_over, until_state

TORN = ".metrics.json.0123456789ab.tmp"


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    yield home
    end_all(home)


def litter(run: RunDir) -> list[Path]:
    """What kills leave in a run: a file and a checkpoint that were being written."""
    (run.path / TORN).write_text("{")
    writing = run.path / "checkpoints" / ".writing"
    writing.mkdir(parents=True)
    (writing / "weights").write_bytes(bytes(5000))
    return [run.path / TORN, writing]


def drafts(home: Path) -> tuple[Path, Path, Path]:
    """Drafts of a maker that is gone, of one that lives, and of one that nobody knows."""
    made = [home / "runs" / f".new-{name}" for name in ("gone", "lives", "unknown")]
    for path in made:
        path.mkdir()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    dead = ProcessIdentity.of(gone.pid)
    gone.wait()
    write_json(made[0] / "state.json", {"creator": dead.to_dict()})
    write_json(made[1] / "state.json", {"creator": ProcessIdentity.current().to_dict()})
    return made[0], made[1], made[2]


def test_what_is_left_is_shown_then_removed_and_all_else_stays(runs: Path) -> None:
    over, going = start(runs, [steps(3), {"checkpoint": 3}]), start(runs, [steps(600, every=0.05)])
    until_over(over)
    until_state(going, "running")
    useless, of_a_live_run = litter(over), litter(going)
    gone, lives, unknown = drafts(runs)
    (over.path / "notes.txt").write_text("a person's")
    (runs / "runs" / ".mine").mkdir()
    mark = identity(over, "trainer").mark
    with bystander():
        left = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(600)"], env=os.environ | {TREE: f"{mark}"}
        )
        until(lambda: (over.path / "report.html").exists())
        shown = rl_cli("runs", "clean", "--json").rows()[0]
        known = {item["path"] for item in shown["items"]}
        assert known == {None, *map(str, useless), str(gone)}
        assert [item["pid"] for item in shown["items"] if item["kind"] == "process"] == [left.pid]
        assert shown["bytes"] > 5000
        assert left.poll() is None
        assert all(path.exists() for path in (*useless, gone))
        told = rl_cli("runs", "clean")
        assert "--yes removes it" in told.out
        done = rl_cli("runs", "clean", "--yes")
        assert (done.code, "freed" in done.out) == (0, True), done.err
        assert left.wait(30) == -signal.SIGTERM
    assert not [path for path in (*useless, gone) if path.exists()]
    stays = [lives, unknown, *of_a_live_run, over.path / "notes.txt", runs / "runs" / ".mine"]
    assert all(path.exists() for path in stays)
    assert (over.path / "checkpoints" / "step-3").is_dir()
    assert going.state()["state"] == "running"
    assert "nothing is left behind" in rl_cli("runs", "clean").err


def test_a_whole_run_goes_only_when_it_is_named_and_over(runs: Path) -> None:
    over, going = start(runs, [steps(3)]), start(runs, [steps(600, every=0.05)])
    until_over(over)
    until_state(going, "running")
    until(lambda: not identity(over, "supervisor").alive())
    refused = rl_cli("runs", "clean", going.id, "--yes")
    assert refused.code == 2
    assert f"rl-cli runs stop {going.id}" in refused.err
    shown = rl_cli("runs", "clean", over.id)
    assert (shown.code, over.path.is_dir()) == (0, True)
    assert rl_cli("runs", "clean", over.id, "--yes").code == 0
    assert [path.name for path in (runs / "runs").iterdir()] == [going.id]
    assert find_run(runs, "latest").id == going.id


def test_a_run_that_is_lost_on_another_machine_is_left_alone(runs: Path) -> None:
    run = start(runs, [steps(3)])
    until_over(run)
    until(lambda: not identity(run, "supervisor").alive())
    litter(run)
    owner = {**identity(run, "supervisor").to_dict(), "host": "elsewhere"}
    edit_state(run, state="lost", reason="no sign of life", supervisor=owner)
    assert rl_cli("runs", "clean", "--json").rows()[0]["items"] == []
    assert rl_cli("runs", "clean", run.id, "--yes").code == 2
    assert run.path.is_dir()


@pytest.mark.parametrize("words", [("--older-than", "soon"), ("latest", "--older-than", "7d"), ("nothing",)])
def test_clean_refuses_what_makes_no_sense(runs: Path, words: tuple[str, ...]) -> None:
    until_over(start(runs, [steps(1)]))
    told = rl_cli("runs", "clean", *words)
    assert (told.code, len(told.err.splitlines())) == (2, 1), told.err


def test_only_runs_that_have_been_over_for_long_are_looked_at(runs: Path) -> None:
    run = start(runs, [steps(3)])
    until_over(run)
    until(lambda: not identity(run, "supervisor").alive())
    litter(run)
    assert len(rl_cli("runs", "clean", "--older-than", "1d", "--json").rows()[0]["items"]) == 0
    edit_state(run, ended="2020-01-01T00:00:00.000Z")
    assert len(rl_cli("runs", "clean", "--older-than", "1d", "--json").rows()[0]["items"]) == 2


def test_a_link_to_a_run_is_refused_before_anything_is_renamed(runs: Path) -> None:
    run = start(runs, [steps(2)])
    until_over(run)
    (runs / "elsewhere").mkdir()
    run.path.rename(runs / "elsewhere" / "real")
    link = runs / "runs" / "link"
    link.symlink_to(runs / "elsewhere" / "real")
    refused = rl_cli("runs", "clean", "link", "--yes")
    assert refused.code == 2, refused
    assert "it is a link to" in refused.err
    assert "freed" not in refused.out + refused.err
    assert link.is_symlink()
    assert (link / "run.yaml").is_file()
    assert not list((runs / "runs").glob(".old-*"))


def test_a_trainer_whose_state_cannot_be_read_is_named_by_clean_and_ended_by_stop(runs: Path) -> None:
    run = start(runs, [steps(2), {"child": 600}, steps(3000, every=0.1)])
    until_state(run, "running")
    trainer, supervisor = identity(run, "trainer"), identity(run, "supervisor")
    os.kill(supervisor.pid, signal.SIGKILL)
    until(lambda: not supervisor.alive())
    (run.path / "state.json").write_text("{")
    refused = rl_cli("runs", "clean", run.id, "--yes")
    assert (refused.code, f"of it still run: pid {trainer.pid}" in refused.err) == (2, True), refused
    stopped = rl_cli("runs", "stop", run.id, "--now")
    assert "nothing to stop" not in stopped.err
    assert not trainer.alive()
    assert not list(marked_processes([trainer.mark]))
    assert "nothing to stop" in rl_cli("runs", "stop", run.id).err
