"""What the fault matrix does to runs, one function per fault, and what must hold after each."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from rl_cli.core.errors import RlCliError
from rl_cli.core.files import write_atomic
from rl_cli.core.processes import ProcessIdentity, python_module
from rl_cli.runs.launch import attach_run, stop_run
from rl_cli.runs.resuming.resume import resume_run
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import is_over
from rl_cli.runs.store import RunDir, list_runs
from rl_cli.runs.supervision import children
from rl_cli.runs.times import seconds_of
from tests.processes import all_pids, environment_of, is_zombie, marks_of, parent_of, words_of
from tests.runs.kit import identity, until, until_over, until_state

BYSTANDER = "import time; time.sleep(600)"


def left_of(home: Path, argument: str | None = None) -> list[str]:
    """Command lines of what runs of this home have left running, zombies that nobody reaps among them.

    Args:
        home: Where the runs are.
        argument: What has it in its command line belongs to them too, whatever became of its environment.
    """
    found = []
    ours, sessions = f"RL_CLI_HOME={home}", _sessions_of(home)
    for pid in all_pids():
        environment = environment_of(pid)
        if environment in ([], [""]) and is_zombie(pid):
            with suppress(OSError):
                if os.getsid(pid) in sessions and parent_of(pid) not in (1, os.getpid()):
                    found.append(f"{pid} (zombie)")
        elif (ours in environment and marks_of(environment)) or (argument and argument in words_of(pid)):
            found.append(f"{pid} {' '.join(words_of(pid))}")
    return found


def _sessions_of(home: Path) -> set[int]:
    """Those that were started for processes of its runs."""
    states = [run.state() for run in list_runs(home)]
    known = [one for state in states for one in [state.get("supervisor"), *state["processes"].values()]]
    return {one["pid"] for one in known if one}


@contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of somebody else, with the command line of a trainer's child; it must outlive the test."""
    process = subprocess.Popen([sys.executable, "-c", BYSTANDER, "rl_cli.training.replay_worker"])
    try:
        yield process
        assert process.poll() is None, "a foreign process was killed"
    finally:
        process.kill()
        process.wait()


def bystander_pid() -> int:
    return next(pid for pid in all_pids() if BYSTANDER in words_of(pid))


def is_deaf(run: RunDir) -> bool:
    """Whether its trainer ignores SIGTERM by now."""
    status = Path(f"/proc/{identity(run, 'trainer').pid}/status").read_text()
    [ignored] = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:")]
    return bool(int(ignored, 16) >> (signal.SIGTERM - 1) & 1)


def kill(run: RunDir, process: str, number: int = signal.SIGKILL) -> None:
    one = identity(run, process)
    os.kill(one.pid, number)
    if number != signal.SIGSTOP:
        until(lambda: not one.alive())


def kill_supervisor(run: RunDir) -> None:
    kill(run, "supervisor")


def kill_both(run: RunDir) -> None:
    kill(run, "supervisor")
    kill(run, "trainer")


def kill_both_while_stopping(run: RunDir) -> None:
    stop_run(run, "user", "enough", wait=False)
    until_state(run, "stopping")
    kill_both(run)


def stop(run: RunDir) -> None:
    stop_run(run, "user", "enough")


def stop_now(run: RunDir) -> None:
    stop_run(run, "user", "enough", now=True)


def stop_then_now(run: RunDir) -> None:
    stop_run(run, "user", "enough", wait=False)
    until_state(run, "stopping")
    stop_now(run)


def stop_twice(run: RunDir) -> None:
    stop(run)
    stop(run)


def kill_supervisor_while_stopping(run: RunDir) -> None:
    stop_run(run, "user", "enough", wait=False)
    until_state(run, "stopping")
    kill_supervisor(run)
    stop_now(run)


def suspend_the_trainer(run: RunDir) -> None:
    kill(run, "trainer", signal.SIGSTOP)


def attach_three_times_at_once(run: RunDir) -> None:
    def attach() -> None:
        with suppress(RlCliError):  # another one was faster
            attach_run(run)

    kill_supervisor(run)
    threads = [threading.Thread(target=attach) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until_state(run, "running")
    assert [e["kind"] for e in run.events()].count("attached") == 1
    stop(run)


def stop_twice_at_once(run: RunDir) -> None:
    threads = [threading.Thread(target=stop, args=[run]) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.get("state") for e in run.events()].count("stopped") == 1


def stop_as_it_ends(run: RunDir) -> None:
    until(lambda: run.exit("trainer"))
    stop(run)


def kill_supervisor_and_stop(run: RunDir) -> None:
    kill_supervisor(run)
    stop(run)


def kill_supervisor_and_stop_now(run: RunDir) -> None:
    kill_supervisor(run)
    stop_now(run)


def kill_the_trainer(run: RunDir) -> None:
    kill(run, "trainer")


def kill_supervisor_and_attach(run: RunDir) -> None:
    kill_supervisor(run)
    attach_run(run)
    assert "attached" in [e["kind"] for e in run.events()]


def kill_supervisors_twice(run: RunDir) -> None:
    kill_supervisor_and_attach(run)
    kill_supervisor_and_attach(run)


def attach_and_stop(run: RunDir) -> None:
    kill_supervisor_and_attach(run)
    stop(run)


def attach_and_kill_the_trainer(run: RunDir) -> None:
    kill_supervisor_and_attach(run)
    kill(run, "trainer")


def second_supervisor(run: RunDir) -> None:
    argv = python_module("rl_cli.runs.supervision.supervisor", str(run.path))
    for words in (argv, [*argv, "--attach"]):
        told = subprocess.run(words, timeout=60, check=True, capture_output=True, text=True).stdout
        assert "is held by another process" in told
    stop(run)


def edit_state(run: RunDir, **changes: Any) -> None:
    path = run.path / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def processes_that_are(run: RunDir, **changes: Any) -> dict[str, Any]:
    """The run's processes with something else in their identities."""
    state = json.loads((run.path / "state.json").read_text())
    others = {name: {**one, **changes} for name, one in state["processes"].items()}
    return {"supervisor": {**state["supervisor"], **changes}, "processes": others}


def restart_the_machine(run: RunDir) -> None:
    """Its pids belong to others afterwards, started in the same hundredth of a second."""
    kill_both(run)
    other = ProcessIdentity.of(bystander_pid())
    edit_state(run, **processes_that_are(run, pid=other.pid, started=other.started, boot=str(uuid.uuid4())))


def reuse_pids(run: RunDir) -> None:
    kill_both(run)
    edit_state(run, **processes_that_are(run, pid=bystander_pid()))


def set_the_clock_back(run: RunDir) -> None:
    """All that was written lies in the future."""
    kill_both(run)
    edit_state(run, **dict.fromkeys(("created", "started", "running_since"), "2093-01-01T00:00:00.000Z"))


def set_the_clock_forward(run: RunDir) -> None:
    kill_supervisor(run)
    edit_state(run, **dict.fromkeys(("created", "started", "heartbeat"), "2001-01-01T00:00:00.000Z"))
    attach_run(run)
    until(lambda: run.state()["state"] == "running")
    stop(run)


@contextmanager
def movable_clock(file: Path) -> Iterator[None]:
    """The wall clock, of this process and of those that it starts, can be set: see `set_the_live_clock`."""
    true = time.time
    file.write_text("0")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MOVED_CLOCK", str(file))
        patch.setenv("PYTHONPATH", str(Path(__file__).with_name("moved_clock")))
        patch.setattr(time, "time", lambda: true() + float(file.read_text()))
        yield


def set_the_live_clock(days: float, then: Callable[[RunDir], None] | None = None) -> Callable[[RunDir], None]:
    """A fault: supervisor, trainer and everybody else see the wall clock jump, and go on."""

    def fault(run: RunDir) -> None:
        before = time.time()
        move_the_clock(days)
        until(lambda: abs(time_of(run.state()["heartbeat"]) - before) > 86400)
        until(lambda: abs(time_of(run.last_metrics()["time"]) - before) > 86400)
        assert run.state()["state"] == "running"
        if then:
            then(run)

    return fault


def move_the_clock(days: float) -> None:
    write_atomic(Path(os.environ["MOVED_CLOCK"]), str(days * 86400))


def time_of(text: str) -> float:
    seconds = seconds_of(text)
    assert seconds is not None
    return seconds


def take_over_after_the_clock_was_set(days: float) -> Callable[[RunDir], None]:
    """A fault: nothing was written since, so that only the times of before are there to judge silence by."""

    def fault(run: RunDir) -> None:
        until(lambda: run.state().get("clock"))
        kill_supervisor(run)
        move_the_clock(days)
        attach_run(run)
        beaten = run.state()["heartbeat"]
        until(lambda: run.state()["heartbeat"] != beaten)
        assert run.state()["state"] == "running", run.state()["reason"]
        stop(run)

    return fault


def kill_both_and_resume(run: RunDir) -> None:
    kill_both(run)
    assert resume_run(run).attempt == 2


def copy_of(run: RunDir, target: Path) -> None:
    """Without what is being written at this moment."""
    shutil.copytree(run.path, target, ignore=shutil.ignore_patterns("*.tmp"))


def move_while_it_runs(run: RunDir) -> None:
    target = run.path.with_name("moved")
    run.path.rename(target)
    run.path = target


def move_a_lost_one(run: RunDir) -> None:
    kill_supervisor(run)
    move_while_it_runs(run)


def move_after_the_end(run: RunDir) -> None:
    until_over(run)
    move_while_it_runs(run)


def delete_while_it_runs(run: RunDir) -> None:
    """What it said last is kept for the test to look at."""
    copy = run.path.with_name("copy")
    copy_of(run, copy)
    shutil.rmtree(run.path, ignore_errors=True)
    shutil.rmtree(run.path, ignore_errors=True)
    run.path = copy


def remove_the_home_while_it_runs(run: RunDir) -> None:
    """What it said last is kept for the test to look at."""
    copy = run.home.with_name("kept") / "runs" / run.id
    copy_of(run, copy)
    for _ in range(2):
        shutil.rmtree(run.home, ignore_errors=True)
    run.path = copy


def copy_while_it_runs(run: RunDir) -> None:
    """What is done to the copy does not reach the original."""
    copy = RunDir(run.home / "elsewhere" / "runs" / run.id)
    copy_of(run, copy.path)
    assert stop_run(copy, "user", "the copy", now=True)["state"] == "lost"
    assert "this is a copy of" in copy.state()["reason"]
    assert run.state()["state"] == "running"
    step = run.last_metrics()["step"]
    until(lambda: run.last_metrics()["step"] > step + 1)
    stop(run)


def copy_to_another_host(run: RunDir) -> None:
    """There nothing is known of its processes but what the heartbeat says, and nobody is killed."""
    copy = RunDir(run.home / "elsewhere" / "runs" / run.id)
    copy_of(run, copy.path)
    old = {"heartbeat": "2020-01-01T00:00:00.000Z", "place": None}
    edit_state(copy, **processes_that_are(copy, host="elsewhere"), **old)
    assert settle(copy)["state"] == "lost"
    assert "no sign of life from the supervisor on elsewhere" in copy.state()["reason"]
    assert is_over(copy.state())
    assert run.state()["state"] == "running"
    stop(run)


def suspend_the_supervisor_and_stop(run: RunDir) -> None:
    os.kill(identity(run, "supervisor").pid, signal.SIGSTOP)
    stop_now(run)


def tell_the_supervisor_to_end(run: RunDir) -> None:
    os.kill(identity(run, "supervisor").pid, signal.SIGTERM)


def kill_the_environment(run: RunDir) -> None:
    kill(run, "environment")


def take_its_port(run: RunDir) -> None:
    import socket

    with socket.create_server(("127.0.0.1", run.state()["ports"]["master"])):
        until_over(run)


STARTS_AND_DIES = """
import os, sys
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision import supervisor
start = children.start
def start_and_die(*args, **options):
    start(*args, **options)
    os.kill(os.getpid(), 9)
children.start = start_and_die
supervisor.main(sys.argv[1])
"""
HAS_NO_WORKER = """
import sys
from rl_cli.runs import backends
from rl_cli.runs.supervision import supervisor
backends.WORKERS["replay"] = "rl_cli.training.gone"
supervisor.main(sys.argv[1])
"""
TRAINER_IS_NOT_FOUND = """
import sys
from rl_cli.runs import backends
from rl_cli.runs.supervision import supervisor
from rl_cli.runs.supervision import workers
workers.python_module = lambda *words: ["/nowhere/python", *words]
supervisor.main(sys.argv[1])
"""


SUSPENDS_ITSELF = """
import os, signal, sys
def suspend(event, words, opened=[]):
    if event == "open" and str(words[0]).endswith("run.yaml") and not opened:
        opened.append(words)
        os.kill(os.getpid(), signal.SIGSTOP)
sys.addaudithook(suspend)
"""
USES_A_WORKER = """
import sys
from rl_cli.runs import backends
from rl_cli.runs.supervision import supervisor
backends.WORKERS["replay"] = sys.argv[2]
supervisor.main(sys.argv[1])
"""
STARTS_ANOTHER_USERS = """
import subprocess, sys
from rl_cli.training.replay_worker import helpers, main
if __name__ == "__main__":
    subprocess.Popen(["setpriv", "--reuid=65534", "sleep", "600"], start_new_session=True)
    main(sys.argv[1])
"""
BECOMES_ANOTHER_USER = """
import os, time
from rl_cli.training.replay_worker import helpers
if __name__ == "__main__":
    os.setuid(65534)
    time.sleep(600)
"""
LEAVES_BEHIND = """
import os, subprocess, sys
from rl_cli.training.replay_worker import helpers, main
if __name__ == "__main__":
    subprocess.Popen(["sh", "-c", os.environ["LEAVES_BEHIND"]])
    main(sys.argv[1])
"""
MAY_NOT_KILL = ["setpriv", "--bounding-set=-kill", "--inh-caps=-kill"]
"""Before a command line, as root: it and what it starts may signal processes of its own user only."""


def supervise_with(run: RunDir, script: str) -> None:
    """Supervises a run that was created by a supervisor in which something is broken."""
    argv = [sys.executable, "-P", "-c", script, str(run.path)]
    log, home = run.log_path("supervisor"), {"RL_CLI_HOME": str(run.home)}
    children.start(argv, log, cwd=run.path, env=home, inside=False).wait(60)


def suspended_supervisor(run: RunDir) -> children.Child:
    """The supervisor of a run that was created, suspended between taking the lock and owning the run."""
    folder = run.home.with_name("suspends")
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SUSPENDS_ITSELF)
    argv = python_module("rl_cli.runs.supervision.supervisor", str(run.path))
    env = {"PYTHONPATH": str(folder)}
    child = children.start(argv, run.log_path("supervisor"), cwd=run.path, env=env, inside=False)
    until(lambda: psutil.Process(child.identity.pid).status() == psutil.STATUS_STOPPED)
    return child


def supervise_worker(run: RunDir, worker: str, before: Sequence[str] = (), **env: str) -> children.Child:
    """Supervises a run that was created, with a trainer of its own.

    Args:
        run: The run.
        worker: Source text of the trainer.
        before: What comes before the supervisor's command line.
        env: Variables of both.
    """
    folder = run.home.with_name("workers")
    folder.mkdir()
    (folder / "worker_to_test.py").write_text(worker)
    argv = [*before, sys.executable, "-P", "-c", USES_A_WORKER, str(run.path), "worker_to_test"]
    env = {"RL_CLI_HOME": str(run.home), "PYTHONPATH": str(folder), **env}
    return children.start(argv, run.log_path("supervisor"), cwd=run.path, env=env, inside=False)


def may_be_denied() -> bool:
    """Whether processes can be started here that their starter may not end."""
    probe = [*MAY_NOT_KILL, "setpriv", "--reuid=65534", "true"]
    return bool(shutil.which("setpriv")) and subprocess.run(probe, capture_output=True).returncode == 0
