"""What a task had on this machine is taken away at its end: its control groups, what lies in its folder."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


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


def take_away(groups: list[str], top: str, parts: list[str], made: list[Any], next: str) -> bool:
    """Empties the folder of a task in which nothing runs any more, and gives it another name.

    Returns:
        Whether nothing is left to do. Folders with something in them are left to the host.
    """
    try:
        for group in groups:
            os.rmdir(group)
        if not empty(top, parts, made, os.rmdir):
            return False
        os.rename(top, next)
    except OSError:
        return False
    return True
