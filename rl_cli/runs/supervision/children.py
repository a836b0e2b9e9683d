"""Starting the processes of a run, and noticing at once that one has ended."""

from __future__ import annotations

import ctypes
import os
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rl_cli.core.own_process import provider_keys
from rl_cli.core.processes import TREE, ProcessIdentity

MAX_THREADS = 4
"""Threads for the arithmetic of a worker, unless OMP_NUM_THREADS is set."""
PR_SET_CHILD_SUBREAPER = 36
_started: list[subprocess.Popen[bytes]] = []
"""What `start` has started, and is not known to have ended."""


@dataclass
class Child:
    process: subprocess.Popen[bytes]
    identity: ProcessIdentity

    def wait(self, seconds: float) -> int | None:
        """Waits up to `seconds`; returns the exit code (negative: the signal), None if it still runs."""
        if self.process.poll() is None and not _wait_for_exit(self.process.pid, seconds):
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        return self.process.poll()

    def ended(self, seconds: float) -> bool:
        """Waits up to `seconds`; whether it has ended."""
        return self.wait(seconds) is not None

    @property
    def code(self) -> int | None:
        """Its exit code (negative: the signal) once it has ended."""
        return self.process.returncode


@dataclass
class Adopted:
    """A process that a supervisor which is gone had started: its end is seen, its exit code is not."""

    identity: ProcessIdentity
    code: None = None

    def ended(self, seconds: float) -> bool:
        """Waits up to `seconds`; whether it has ended."""
        if self.identity.alive() and not _wait_for_exit(self.identity.pid, seconds):
            time.sleep(min(seconds, 0.1))
        return not self.identity.alive()


def start(
    argv: list[str], log_path: Path, *, cwd: Path, env: Mapping[str, str | None], inside: bool = True
) -> Child:
    """Starts a process in a session of its own; its output is appended to a file, its input is empty.

    Args:
        argv: The command line.
        log_path: The file; its folder must exist.
        cwd: Its working folder.
        env: Variables on top of ours; None takes one out.
        inside: Whether it belongs to our process tree, and ends when that is ended.

    Raises:
        OSError: It cannot be started.
    """
    mark = secrets.token_hex(8)
    marks = [*(os.environ.get(TREE, "").split() if inside else []), mark]
    wanted: dict[str, str | None] = {**os.environ, **env, TREE: " ".join(marks)}
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={name: value for name, value in wanted.items() if value is not None},
            cwd=cwd,
        )
    _started[:] = [*(one for one in _started if one.returncode is None), process]
    seen = ProcessIdentity.of(process.pid)  # not reaped yet, so it is there even if it has ended
    return Child(process, ProcessIdentity(seen.pid, seen.started, seen.host, seen.boot, mark))


def adopt_orphans() -> None:
    """From now on what descendants of this process leave behind becomes its child, not init's (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def unmarked_orphans() -> list[ProcessIdentity]:
    """Children of ours that we did not start and that carry no mark: left by parents, environment emptied."""
    import psutil

    found = []
    for process in psutil.Process().children():
        with suppress(psutil.NoSuchProcess, OSError):
            if not _is_orphan(process.pid) or process.status() == psutil.STATUS_ZOMBIE:
                continue
            try:
                marked = TREE in process.environ()
            except psutil.AccessDenied:
                marked = False
            if not marked:
                found.append(ProcessIdentity.of(process.pid))
    return found


def reap_orphans() -> None:
    """Lets the adopted ones go that have ended; one that we started and have not waited for comes first."""
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if not _is_orphan(ended.si_pid):
                return
            os.waitpid(ended.si_pid, 0)


def _is_orphan(child: int) -> bool:
    """Whether a child of this process was adopted: what we start is known, or stays in our session."""
    known = {process.pid for process in _started if process.returncode is None}
    return child not in known and os.getsid(child) != os.getsid(0)


def own_identity() -> ProcessIdentity:
    """This process, with the mark that what it starts inherits."""
    seen = ProcessIdentity.current()
    mark = (os.environ.get(TREE, "").split() or [""])[-1]
    return ProcessIdentity(seen.pid, seen.started, seen.host, seen.boot, mark)


def worker_environment() -> dict[str, str | None]:
    """Variables of every worker, on top of those it inherits; keys of providers (None) it does not get."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = os.environ.get("OMP_NUM_THREADS") or str(min(cores, MAX_THREADS))
    ours = {"OMP_NUM_THREADS": threads, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
    return ours | dict.fromkeys(provider_keys(os.environ))


def how_it_ended(code: int | None) -> str:
    """`code` in words: `ended with code 3`, `was killed by SIGKILL (...)`; None: it was not our child."""
    if code is None:
        return "ended without saying why, and the supervisor that would know its exit code was gone"
    if code >= 0:
        return f"ended with code {code}" if code else "ended without saying why"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    memory = " (by a person, or by the system because memory ran out)" if name == "SIGKILL" else ""
    return f"was killed by {name}{memory}"


def _wait_for_exit(pid: int, seconds: float) -> bool:
    """Waits up to `seconds`; False if that is not possible here."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # an old kernel, or a sandbox that forbids it
        return False
    try:
        select.select([descriptor], [], [], seconds)
    finally:
        os.close(descriptor)
    return True
