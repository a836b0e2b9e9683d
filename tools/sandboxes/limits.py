"""What bounds the processes of a task: a control group of its own where one can be made, and rlimits.

Version 1 and 2 of control groups are used alike. A group is made below the one of this process (version 1),
or below the nearest one above it that hands out controllers (version 2).
"""

from __future__ import annotations

import os
import secrets
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.sandboxes.agent.leaving import unused
from tools.sandboxes.base import MIB, Resources
from tools.sandboxes.owners import is_left_over, owner

CPU_PERIOD = 100_000
"""Microseconds over which a share of CPUs is handed out."""
ENDING_SECONDS = 2.0
PREFIX = "rl-cli-"
CONTROLLERS = ("pids", "memory", "cpu")


@dataclass(frozen=True)
class Base:
    """Where groups can be made."""

    version: int
    folders: dict[str, Path]
    """By controller; the same one for all in version 2."""
    tops: frozenset[Path]
    """The hierarchies that they are in: other processes of this user have made groups elsewhere there."""


class ControlGroup:
    """A task's own group. Its methods block for a moment.

    Args:
        resources: What it bounds.
    """

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self.bounds: set[str] = set()
        """Which fields of the resources it bounds."""
        self.folders: list[Path] = []
        """What was made."""
        self._doors: list[int] = []

    def make(self) -> None:
        """Makes it; what cannot be bounded on this machine is left out."""
        base = find_base()
        name = f"{PREFIX}{owner()}.{secrets.token_hex(8)}"
        doors: dict[Path, int] = {}
        for controller, what, settings in _wanted(self._resources, base.version):
            if controller not in base.folders:
                continue
            group = base.folders[controller] / name
            try:
                if group not in self.folders:
                    group.mkdir()
                    self.folders.append(group)
                for file, value in settings.items():
                    if file not in COUNTING_SWAP or (group / file).exists():
                        (group / file).write_text(value)
                if group not in doors:
                    doors[group] = os.open(group / "cgroup.procs", os.O_WRONLY)
            except OSError:  # not ours to use: whoever asks for bounds sees that
                continue
            self.bounds.add(what)
        self._doors = list(doors.values())

    def doors(self) -> list[int]:
        """Descriptors, for the caller to close: a process that writes "0" to each of them is in the group."""
        doors, self._doors = self._doors, []
        return doors

    def is_unused(self) -> bool:
        """Whether another task may have it as well as a new one."""
        try:
            return unused([str(folder) for folder in self.folders])
        except OSError:  # somebody has removed it
            return False

    def remove(self) -> None:
        """Ends what is left in it."""
        for door in self.doors():
            os.close(door)
        for folder in self.folders:
            _remove(folder)
        self.folders.clear()


COUNTING_SWAP = ("memory.memsw.limit_in_bytes", "memory.swap.max")
"""Files that are there only where the kernel counts swap."""


def _wanted(resources: Resources, version: int) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Controller, what it bounds, and the files that say so."""
    if resources.processes is not None:
        yield "pids", "processes", {"pids.max": str(resources.processes)}
    if resources.memory_mib is not None:
        most = str((resources.memory_mib + (resources.disk_mib or 0)) * MIB)  # files in memory count too
        first = {"memory.limit_in_bytes": most, "memory.memsw.limit_in_bytes": most}
        second = {"memory.max": most, "memory.swap.max": "0"}
        yield "memory", "memory_mib", first if version == 1 else second
    if resources.cpus is not None:
        quota = str(int(resources.cpus * CPU_PERIOD))
        first = {"cpu.cfs_period_us": str(CPU_PERIOD), "cpu.cfs_quota_us": quota}
        yield "cpu", "cpus", first if version == 1 else {"cpu.max": f"{quota} {CPU_PERIOD}"}


@cache
def find_base() -> Base:
    """Where this process may make groups; removes what killed ones left there and elsewhere. Asked once."""
    base = _find_base(Path("/proc/self"))
    for top in base.tops:
        for place, names, _ in os.walk(top):
            for name in filter(_is_left_over, names):
                with suppress(FileNotFoundError):  # another program of ours removes it, too
                    if os.stat(f"{place}/{name}").st_uid == os.geteuid():
                        _remove(Path(place, name))
    return base


def _is_left_over(name: str) -> bool:
    return name.startswith(PREFIX) and is_left_over(name.removeprefix(PREFIX).partition(".")[0])


def _find_base(process: Path) -> Base:
    own = [line.split(":", 2) for line in (process / "cgroup").read_text().splitlines()]
    first: dict[str, Path] = {}
    tops: dict[str, Path] = {}
    for line in (process / "mountinfo").read_text().splitlines():
        fields, _, (kind, _, options) = _parts(line)
        root, place = fields[3], Path(fields[4])
        if kind == "cgroup":
            for _, names, path in own:
                for controller in set(CONTROLLERS) & set(names.split(",")) & set(options.split(",")):
                    first[controller], tops[controller] = _within(place, root, path), place
        elif kind == "cgroup2":
            path = next(path for number, _, path in own if number == "0")
            folder = _handing_out(place, _within(place, root, path))
            if folder is not None:
                return Base(2, dict.fromkeys(_handed_out(folder), folder), frozenset({place}))
    usable = {controller: folder for controller, folder in first.items() if os.access(folder, os.W_OK)}
    return Base(1, usable, frozenset(tops.values()))


def _parts(line: str) -> tuple[list[str], str, list[str]]:
    before, dash, after = line.partition(" - ")
    return before.split(), dash, after.split()


def _within(place: Path, root: str, path: str) -> Path:
    """Where a group is found, given what of the hierarchy is mounted."""
    relative = path[len(root) :] if root != "/" and path.startswith(root) else path
    folder = place / relative.lstrip("/")
    return folder if folder.is_dir() else place


def _handed_out(folder: Path) -> set[str]:
    return set(CONTROLLERS) & set((folder / "cgroup.subtree_control").read_text().split())


def _handing_out(top: Path, own: Path) -> Path | None:
    """The nearest group above our own that hands out controllers, and in which we may make others."""
    folder = own
    while folder != top and top in folder.parents:
        folder = folder.parent
        writable = os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
        if writable and _handed_out(folder):
            return folder
    return None


def _remove(folder: Path) -> None:
    until = time.monotonic() + ENDING_SECONDS
    while folder.exists() and time.monotonic() < until:
        try:
            for pid in (folder / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
            folder.rmdir()
        except OSError:  # they are still ending
            time.sleep(0.005)
