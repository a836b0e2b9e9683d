from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module, spawn_detached


def wait_until(true: Callable[[], object], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_this_process_is_alive_and_survives_a_round_trip() -> None:
    me = ProcessIdentity.current()
    assert me.alive()
    assert ProcessIdentity.from_dict(me.to_dict()) == me


def test_a_reused_pid_another_boot_and_another_host_are_told_apart() -> None:
    me = ProcessIdentity.current()
    assert replace(me, started=me.started - 1).alive() is False
    assert replace(me, boot="another").alive() is False
    assert replace(me, host="another").alive() is None
    assert kill_tree(replace(me, host="another")) == []
    with pytest.raises(ProcessLookupError):
        ProcessIdentity.of(2**22 + 1)


def test_a_zombie_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    identity = ProcessIdentity.of(child.pid)
    wait_until(lambda: psutil.Process(child.pid).status() == psutil.STATUS_ZOMBIE)
    assert identity.alive() is False
    child.wait()


def test_a_detached_process_logs_and_is_reaped(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("before\n")
    identity = spawn_detached(
        [sys.executable, "-c", "import os,sys; print(os.environ['A'], os.getcwd()); sys.stderr.write('err')"],
        log,
        env={"A": "value"},
        cwd=tmp_path,
    )
    wait_until(lambda: not psutil.pid_exists(identity.pid))
    assert identity.alive() is False
    assert log.read_text().splitlines()[0] == "before"
    assert f"value {tmp_path}" in log.read_text()
    assert "err" in log.read_text()


def test_a_detached_process_outlives_its_parent(tmp_path: Path) -> None:
    code = (
        "from rl_cli.core.processes import spawn_detached\n"
        "import sys, json\n"
        "print(json.dumps(spawn_detached(['sleep', '60'], sys.argv[1]).to_dict()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "log")], capture_output=True, text=True, check=True
    )
    identity = ProcessIdentity.from_dict(json.loads(done.stdout))
    assert identity.alive()
    assert os.getsid(identity.pid) == identity.pid
    assert kill_tree(identity) == []
    assert not identity.alive()


TREE = """
import os, signal, subprocess, sys, time
stubborn = "from signal import *; signal(SIGTERM, SIG_IGN); print(flush=True); pause()"
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
child.stdout.readline()
other = subprocess.Popen(["sleep", "60"], start_new_session=True)
print("pids", child.pid, other.pid, flush=True)
"""


@pytest.mark.parametrize("leader_stays", [True, False])
def test_the_whole_tree_ends_even_without_its_leader(tmp_path: Path, leader_stays: bool) -> None:
    bystander = subprocess.Popen(["sleep", "60"])
    log = tmp_path / "log"
    identity = spawn_detached([sys.executable, "-c", TREE + ("time.sleep(60)" if leader_stays else "")], log)
    wait_until(lambda: "pids" in log.read_text())
    pids = [int(p) for p in log.read_text().split("pids")[1].split()]
    if not leader_stays:
        wait_until(lambda: not identity.alive())
    assert not any(gone(pid) for pid in pids)
    assert kill_tree(identity, grace_seconds=0.3) == []
    assert all(gone(pid) for pid in [*pids, identity.pid])
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


def test_a_reused_pid_is_not_touched() -> None:
    other = subprocess.Popen(["sleep", "60"])
    stale = replace(ProcessIdentity.of(other.pid), started=1.0)
    assert kill_tree(stale, grace_seconds=0.1) == []
    assert other.poll() is None
    other.kill()
    other.wait()


def test_a_process_without_the_mark_is_another_one(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    forged = replace(ProcessIdentity.of(other.pid), mark="0123456789abcdef")
    assert forged.alive() is False
    assert kill_tree(forged, grace_seconds=0.1) == []
    assert other.poll() is None
    other.kill()
    other.wait()
    without = spawn_detached(["env", "-i", "sleep", "60"], tmp_path / "log")
    wait_until(lambda: psutil.Process(without.pid).name() == "sleep")
    assert psutil.Process(without.pid).environ() == {}
    assert without.alive()
    assert kill_tree(without, grace_seconds=0.5) == []
    assert not without.alive()


def test_our_modules_run_from_a_folder_with_files_of_the_same_names(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    (tmp_path / "rl_cli").mkdir()
    (tmp_path / "rl_cli" / "__init__.py").write_text("raise SystemExit('shadowed')")
    done = subprocess.run(python_module("rl_cli.core.errors"), cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
