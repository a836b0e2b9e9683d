"""What a task leaves on this machine at its end: its folder is emptied, its control groups are looked at."""

from __future__ import annotations

import os

from .trees import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

MOST_CHARGED = 64 << 20
"""Bytes that a group may have of files in memory that a task has left elsewhere, for it to be used again."""


def state_of(top: str, parts: Sequence[str]) -> list[Any]:
    """All of a folder and its parts that somebody may have changed.

    Raises:
        OSError
    """
    places = [top, *(f"{top}/{part}" for part in parts)]
    return [sorted(os.listdir(top)), *map(os.listdir, places[1:]), *map(_attributes, places)]


def _attributes(folder: str) -> list[Any]:
    """Which one it is and whose, its mode, and its size, which may tell how much there once was."""
    is_ = os.lstat(folder)
    extended = [[name, os.getxattr(folder, name)] for name in os.listxattr(folder, follow_symlinks=False)]
    return [*is_[:7], extended]


def empty(top: str, parts: Sequence[str], made: list[Any], remove: Callable[[str], object]) -> bool:
    """Takes everything out of the parts of a folder.

    Args:
        made: Their state when they were made.
        remove: Takes a folder away that lies in a part; may raise OSError.

    Returns:
        Whether they then are as they were made.
    """
    try:
        for part, was in zip(parts, made[-len(parts) :], strict=True):
            place = f"{top}/{part}"
            if os.lstat(place)[:3] != tuple(was[:3]):  # somebody's link may lead anywhere
                return False
            for entry in list(os.scandir(place)):
                if entry.is_dir(follow_symlinks=False):
                    remove(entry.path)
                else:
                    os.unlink(entry.path)
        return state_of(top, parts) == made
    except OSError:
        return False


def unused(groups: Sequence[str]) -> bool:
    """Whether nothing of a task is in its control groups any more."""
    for group in groups:
        charged = read(f"{group}/memory.usage_in_bytes") or read(f"{group}/memory.current") or b"0"
        made_below = os.stat(group).st_nlink > 2
        if made_below or read(f"{group}/cgroup.procs") or int(charged) > MOST_CHARGED:
            return False
    return True


def take_away(groups: list[str], top: str, parts: list[str], made: list[Any], next: str) -> bool:
    """Empties the folder of a task in which nothing runs any more, and gives it another name.

    Returns:
        Whether folder and groups are as they were made. Folders with something in them are left to the host.
    """
    try:
        if not empty(top, parts, made, os.rmdir) or not unused(groups):
            return False
        os.rename(top, next)
    except OSError:
        return False
    return True
