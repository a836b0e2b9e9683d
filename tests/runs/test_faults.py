"""What is derived of runs whose processes, clocks and directories are not what they were."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rl_cli.core.files import write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.runs.place import is_copy, place_of
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import read_state
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.supervision.children import Adopted
from rl_cli.runs.supervision.held_folder import HeldFolder
from rl_cli.runs.supervision.ports import Port
from rl_cli.runs.times import since, time_text
from tests.runs.kit import identity, replay_config, start, steps, until, until_state


def test_no_duration_is_negative() -> None:
    assert since(time_text(time.time() + 3600)) == 0
    assert since("2030-01-01T00:00:00Z", "2029-01-01T00:00:00Z") == 0
    assert since("2029-01-01T00:00:00Z", "2029-01-01T00:01:00Z") == 60


def test_a_copy_is_told_from_a_directory_that_was_moved(tmp_path: Path) -> None:
    was = tmp_path / "run"
    was.mkdir()
    state = {"place": place_of(was)}
    copy = shutil.copytree(was, tmp_path / "copy")
    link = tmp_path / "link"
    link.symlink_to(was)
    assert [is_copy(state, path) for path in (was, copy, link)] == [False, True, False]
    moved = was.rename(tmp_path / "moved")
    assert not is_copy(state, moved)
    assert not is_copy({}, moved)


def test_a_held_folder_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    held = HeldFolder(folder)
    assert held.where() == folder
    moved = folder.rename(tmp_path / "moved")
    assert held.where() == moved
    moved.rmdir()
    folder.mkdir()
    assert held.where() is None


def test_two_ports_are_two() -> None:
    ports = [Port() for _ in range(20)]
    assert len({port.number for port in ports}) == 20


def test_an_adopted_process_is_waited_for_without_its_exit_code() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    one = Adopted(ProcessIdentity.of(process.pid))
    assert not one.ended(0.05)
    assert process.stdin
    process.stdin.close()
    assert one.ended(30)
    process.wait()
    assert (one.ended(0), one.code) == (True, None)


def made_by(run: RunDir, creator: ProcessIdentity, seconds_ago: float) -> None:
    created = time_text(time.time() - seconds_ago)
    write_json(
        run.path / "state.json", {**read_state(run.path), "creator": creator.to_dict(), "created": created}
    )


def test_a_run_whose_maker_is_gone_was_never_started(home: Path) -> None:
    run = create_run(replay_config("demo"), home)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    maker = ProcessIdentity.of(gone.pid)
    gone.wait()
    made_by(run, maker, 1)
    assert settle(run)["state"] == "created"
    made_by(run, ProcessIdentity.current(), 20)
    assert settle(run)["state"] == "created"
    made_by(run, maker, 20)
    words = [sys.executable, "-c", "input()", "rl_cli.runs.supervision.supervisor", str(run.path)]
    coming = subprocess.Popen(words, stdin=subprocess.PIPE)
    assert settle(run)["state"] == "created"
    coming.communicate()
    state = settle(run)
    assert (state["state"], "never started" in state["reason"]) == ("failed", True)


def test_the_age_of_a_process_is_that_of_a_clock_that_nobody_sets() -> None:
    here = ProcessIdentity.current()
    assert 0 < here.age() < 86_400
    assert not here.restarted()
    other = ProcessIdentity(os.getpid(), here.started, here.host, "another start")
    assert (other.restarted(), other.alive()) == (True, False)


def put_folder_in_place_of(path: Path) -> None:
    """So that no file can be put there; whoever writes it at the same time may be faster."""
    while True:
        path.unlink(missing_ok=True)
        with contextlib.suppress(FileExistsError):
            return path.mkdir()


def test_an_end_that_cannot_be_written_is_one_line_and_ends_all_the_same(runs: Path) -> None:
    run = start(runs, [steps(600, every=0.05)])
    until_state(run, "running")
    known = [identity(run, name) for name in ("supervisor", "trainer")]
    put_folder_in_place_of(run.path / "state.json")
    (run.path / "state.json" / "in the way").touch()
    run.request_stop("user", "enough", now=True)
    until(lambda: not any(one.alive() for one in known))
    log = run.log_path("supervisor").read_text()
    assert "Traceback" not in log
    assert "the end cannot be written (stopped: user: enough)" in log
