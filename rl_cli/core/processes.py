"""Which process is meant, is it still there, and how to end it with everything that it started."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psutil

TREE = "RL_CLI_PROCESS_TREE"
"""Environment variable that every descendant of a detached process inherits: the marks of its trees."""


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that can be told from a later one with the same pid."""

    pid: int
    started: float
    """Seconds from the machine's start to the process's (Linux), else Unix time. No clock change moves it."""
    host: str
    boot: str = ""
    """The kernel's id of this start of the machine; empty where there is none."""
    mark: str = ""
    """Found in the environment of everything it starts, if spawn_detached() started it."""

    @classmethod
    def current(cls) -> ProcessIdentity:
        return _identity_of_own(os.getpid())

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        """Raises ProcessLookupError if there is no such process."""
        started = _started(pid)
        if started is None:
            raise ProcessLookupError(f"no process {pid}")
        return cls(pid, started, socket.gethostname(), _boot_id())

    def alive(self) -> bool | None:
        """Does it still run? None if it is another host's: that cannot be known here. A zombie is dead.

        A process that lacks the mark is another one: whoever wrote the pid down was wrong, or lied.
        """
        if self.host != socket.gethostname():
            return None
        if self.boot != _boot_id():
            return False
        started = _started(self.pid)
        same = started is not None and abs(started - self.started) < 0.02 and not _is_zombie(self.pid)
        return same and not _is_foreign(self.pid, self.mark)

    def restarted(self) -> bool:
        """Whether its machine, which is this one, was started again since."""
        return self.host == socket.gethostname() and self.boot != _boot_id()

    def age(self) -> float:
        """Seconds since it started; no clock change moves them. Makes sense for a process of this host."""
        now = time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.time()
        return max(0.0, now - self.started)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> ProcessIdentity:
        return cls(
            int(value["pid"]),
            float(value["started"]),
            str(value["host"]),
            str(value.get("boot", "")),
            str(value.get("mark", "")),
        )


def python_module(module: str, *args: str) -> list[str]:
    """The command line that runs one of our modules, whatever lies in the working folder."""
    return [sys.executable, "-P", "-m", module, *args]


def spawn_detached(
    argv: list[str],
    log_path: str | os.PathLike[str],
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> ProcessIdentity:
    """Starts a process that outlives this one and its terminal.

    Args:
        argv: The command line.
        log_path: Where its standard output and error are appended; the folder must exist.
        env: Variables to set on top of this process's environment.
        cwd: Its working folder.

    Raises:
        OSError: The program or the log cannot be opened.
    """
    mark = os.urandom(8).hex()
    marks = [*os.environ.get(TREE, "").split(), mark]
    environment = {**os.environ, **(env or {}), TREE: " ".join(marks)}
    with Path(log_path).open("ab") as log:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment,
            cwd=cwd,
        )
    identity = ProcessIdentity.of(process.pid)  # before anybody reaps it: it may be dead already
    threading.Thread(target=process.wait, daemon=True, name=f"reaper-{process.pid}").start()
    return ProcessIdentity(identity.pid, identity.started, identity.host, identity.boot, mark)


def kill_tree(identity: ProcessIdentity, grace_seconds: float = 5.0) -> list[ProcessIdentity]:
    """Ends a process and all it started: SIGTERM, then SIGKILL for what is left after `grace_seconds`.

    Finds descendants by parentage, by its session, and by the mark those that were left by their parents or
    changed session.
    The calling process is spared. A dead or reused pid is not touched, nor is anything on another host.

    Returns:
        What still runs: this process may not end it, or it hangs in the kernel.
    """
    import psutil

    if identity.host != socket.gethostname():
        return []
    refused: dict[int, psutil.Process] = {}

    def told(processes: Iterable[psutil.Process], word: str) -> list[psutil.Process]:
        for process in processes:
            try:
                getattr(process, word)()
            except psutil.AccessDenied:
                refused[process.pid] = process
            except psutil.NoSuchProcess:
                pass
        return [process for process in processes if process.pid not in refused]

    left = _wait(told(_members(identity), "terminate"), grace_seconds)
    give_up = time.monotonic() + 10  # uninterruptible in the kernel: nothing more can be done
    # Whoever was forked meanwhile is found in the next round.
    while time.monotonic() < give_up:
        found = {p.pid: p for p in [*_running(left), *_members(identity)] if p.pid not in refused}
        left = list(found.values())
        if not left:
            break
        left = _wait(told(left, "kill"), 0.2)
    survivors = []
    for process in _running([*left, *refused.values()]):
        with contextlib.suppress(ProcessLookupError):
            mark = "" if _is_foreign(process.pid, identity.mark) else identity.mark
            survivors.append(replace(ProcessIdentity.of(process.pid), mark=mark))
    return survivors


def marked_processes(marks: Collection[str]) -> Iterator[tuple[ProcessIdentity, list[str]]]:
    """Every process of this machine that carries one of the marks, with its command line."""
    import psutil

    for process in _that_may_carry(marks):
        with contextlib.suppress(psutil.Error, OSError):
            carried = [mark for mark in process.environ().get(TREE, "").split() if mark in marks]
            if carried and process.pid != os.getpid() and _running([process]):
                seen = ProcessIdentity.of(process.pid)
                yield replace(seen, mark=carried[-1]), process.cmdline()


def _that_may_carry(marks: Collection[str]) -> Iterator[psutil.Process]:
    """On Linux those whose environment has such text, found with a tenth of the work; else all."""
    import psutil

    if sys.platform != "linux":
        yield from psutil.process_iter()
        return
    texts = [mark.encode() for mark in marks]
    for pid in psutil.pids():
        with contextlib.suppress(psutil.Error, OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if any(text in environment for text in texts):
                yield psutil.Process(pid)


def _members(identity: ProcessIdentity) -> list[psutil.Process]:
    import psutil

    members: dict[int, psutil.Process] = {}
    with contextlib.suppress(psutil.Error):
        leader = psutil.Process(identity.pid)
        if identity.alive():
            members.update({p.pid: p for p in [leader, *leader.children(recursive=True)]})
    if identity.mark and identity.boot == _boot_id():
        for process in _that_may_carry([identity.mark]):
            with contextlib.suppress(psutil.Error, OSError):
                if identity.mark in process.environ().get(TREE, "").split():
                    members[process.pid] = process
                    members.update({p.pid: p for p in process.children(recursive=True)})
    members.update(_session_of(identity, members))
    members.pop(os.getpid(), None)
    return _running(list(members.values()))


def _session_of(identity: ProcessIdentity, members: Iterable[int]) -> dict[int, psutil.Process]:
    """All of the session that was started for a process, by pid, though it has no parent and no mark left.

    Sessions are named by pids, which are reused: it is ours as long as the process, if only as a zombie, or
    one of the `members` of its tree is in it.
    """
    import psutil

    def inside(pid: int) -> bool:
        with contextlib.suppress(OSError):
            return os.getsid(pid) == identity.pid
        return False

    started = _started(identity.pid) if identity.boot == _boot_id() else None
    same = started is not None and abs(started - identity.started) < 0.02
    there = same and not _is_foreign(identity.pid, identity.mark)
    if not there and not any(inside(pid) for pid in members):
        return {}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter():
        if inside(process.pid):
            with contextlib.suppress(psutil.Error):
                found.update({p.pid: p for p in [process, *process.children(recursive=True)]})
    return found


def _wait(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those that still run after at most `seconds`. (psutil.wait_procs takes others' zombies for running.)"""
    deadline = time.monotonic() + seconds
    while (processes := _running(processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return processes


def _running(processes: list[psutil.Process]) -> list[psutil.Process]:
    import psutil

    running = []
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                running.append(process)
    return running


def _is_foreign(pid: int, mark: str) -> bool:
    """Whether a process has an environment without the mark.

    One that cannot be read, or is empty, says nothing: a program that writes its title over it is still ours.
    """
    if not mark:
        return False
    import psutil

    try:
        environment = psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return False
    return bool(environment) and mark not in environment.get(TREE, "").split()


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _stat_fields(pid: int) -> list[str] | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rfind(")") + 2 :].split()  # the name before it may hold spaces and brackets


@lru_cache(maxsize=1)
def _identity_of_own(pid: int) -> ProcessIdentity:
    """This process's, which a fork of it does not share."""
    return ProcessIdentity.of(pid)


def _started(pid: int) -> float | None:
    if sys.platform == "linux":
        fields = _stat_fields(pid)
        return int(fields[19]) / os.sysconf("SC_CLK_TCK") if fields else None
    import psutil

    try:
        return psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return None


def _is_zombie(pid: int) -> bool:
    if sys.platform == "linux":
        fields = _stat_fields(pid)
        return fields is None or fields[0] in "ZX"
    import psutil

    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
