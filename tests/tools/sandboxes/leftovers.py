"""What sandboxes could leave on this machine: processes, descriptors, mounts, folders, control groups."""

from __future__ import annotations

import os
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from rl_cli.core.processes import ProcessIdentity
from tools.sandboxes.owners import owner
from tools.sandboxes.task_places import remove_places

GONE_SECONDS = 5.0


@contextmanager
def nothing_left() -> Iterator[None]:
    """Fails where there is more afterwards than there was before."""
    before = _seen()
    yield
    until = time.monotonic() + GONE_SECONDS
    while (more := {what: found - before[what] for what, found in _seen().items()}) and any(more.values()):
        assert time.monotonic() < until, (
            f"left behind: { {what: found for what, found in more.items() if found} }"
        )
        time.sleep(0.02)


def _seen() -> dict[str, set[Any]]:
    remove_places()
    own = f"rl-cli-sandboxes-*-{os.getpid()}-*/*"
    return {
        "processes": {(process.pid, process.create_time()) for process in psutil.Process().children(True)},
        "descriptors": {_descriptor(name) for name in os.listdir("/proc/self/fd")} - {None},
        # Without those of container engines: other tests have engines, too.
        "mounts": {line for line in mounts() if "/graph/overlay" not in line},
        "folders": {at for at in Path(tempfile.gettempdir()).glob(own) if not _is_empty(at)},
        "control groups": _control_groups(f"-{os.getpid()}-"),
    }


def _is_empty(folder: Path) -> bool:
    """It is then kept for the next task."""
    return all(at.parent == folder for at in folder.rglob("*"))


def _control_groups(ours: str) -> set[object]:
    """By a walk, which goes on where others remove theirs meanwhile."""
    names = (name for _, folders, _ in os.walk("/sys/fs/cgroup") for name in folders)
    return {name for name in names if name.startswith("rl-cli-") and ours in name}


def mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()


def _descriptor(name: str) -> tuple[str, str] | None:
    try:
        return name, os.readlink(f"/proc/self/fd/{name}")
    except OSError:  # the one of the listing itself
        return None


def mark_of_the_dead() -> str:
    """What a process that has ended since has marked as its own."""
    with subprocess.Popen(["sleep", "60"]) as other:
        mark = owner(ProcessIdentity.of(other.pid))
        other.kill()
    return mark


def rare_sleep() -> str:
    """A command that sleeps for ten minutes, and that no other test runs."""
    return f"sleep 600.{secrets.randbelow(10**9):09}"


def comes_to_run(command: str) -> bool:
    """Whether a process of this machine has this command line, now or soon."""
    until = time.monotonic() + GONE_SECONDS
    while not (found := _running(command)) and time.monotonic() < until:
        time.sleep(0.02)
    return bool(found)


def still_running(command: str) -> list[int]:
    """Processes of this machine with this command line, waiting a moment for those that are being ended."""
    until = time.monotonic() + GONE_SECONDS
    while (found := _running(command)) and time.monotonic() < until:
        time.sleep(0.02)
    return found


def _running(command: str) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if process.info["cmdline"] == command.split()
    ]
