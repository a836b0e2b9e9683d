"""Looks through the processes of this machine, which tests do again and again until something has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from rl_cli.core.processes import TREE

STANDING = ("tests.e2e.fork_server", "agent.nursery")
"""What a worker starts once, for all its tests."""


def words_of(pid: int) -> list[str]:
    """Its command line; empty for zombies, the kernel's own and those that are gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
    return []


def environment_of(pid: int) -> list[str]:
    """What it was started with, NAME=VALUE; empty where that is not ours to read."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    return []


def all_pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    return False


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])


def with_mark(mark: str) -> list[int]:
    """Whatever still carries the mark of a process tree."""
    carry = (pid for pid in all_pids() if any(mark in one for one in marks_of(environment_of(pid))))
    return [pid for pid in carry if not is_zombie(pid)]


def marks_of(environment: list[str]) -> list[str]:
    return [one for one in environment if one.startswith(f"{TREE}=") and one != f"{TREE}="]


def started() -> set[psutil.Process]:
    """All below this process, but for what stands ready for other tests too."""
    this = psutil.Process()
    standing = {
        child for child in this.children() if any(name in " ".join(child.cmdline()) for name in STANDING)
    }
    return set(this.children(recursive=True)) - standing
