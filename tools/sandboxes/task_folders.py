"""Folders of tasks on the host, used again once nothing of their task is in them.

A file system is slow in making folders where many were removed a moment ago.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from contextlib import suppress
from pathlib import Path

from tools.sandboxes.host_folders import new_folder, remove_folder

PARTS = ("work", "home", "tmp", "private")

_State = tuple[object, ...]


class TaskFolder:
    """A folder of a task's own, with its parts in it, all empty. Its methods block for a moment.

    Raises:
        OSError: There can be none.
    """

    def __init__(self) -> None:
        self.path = new_folder()
        for part in PARTS:
            (self.path / part).mkdir()
        self._pid = os.getpid()
        self._made = self._state()

    def clear(self) -> bool:
        """Takes everything out; returns whether it then is as it was made, with another name."""
        for part in PARTS:
            with suppress(OSError):
                for entry in list(os.scandir(self.path / part)):
                    if entry.is_dir(follow_symlinks=False):
                        remove_folder(Path(entry))
                    else:
                        os.unlink(entry)
        try:
            if self._state() != self._made:
                return False
            self.path = self.path.rename(self.path.with_name(secrets.token_hex(8)))
        except OSError:
            return False
        return True

    def _state(self) -> _State:
        """All that somebody may have changed."""
        top, *parts = (self.path, *(self.path / part for part in PARTS))
        names = [sorted(os.listdir(top)), *map(os.listdir, parts)]
        return (*names, *map(_attributes, (top, *parts)))


def _attributes(folder: Path) -> _State:
    """Who it is and whose, its mode, and its size, which may tell how much there once was."""
    is_ = os.lstat(folder)
    extended = [(name, os.getxattr(folder, name)) for name in os.listxattr(folder, follow_symlinks=False)]
    return is_.st_dev, is_.st_ino, is_.st_mode, is_.st_nlink, is_.st_uid, is_.st_gid, is_.st_size, extended


_spare: deque[TaskFolder] = deque()


def take_folder() -> TaskFolder:
    """One for a task. Raises OSError."""
    with suppress(IndexError):
        while (folder := _spare.pop())._pid != os.getpid():  # in a fork they are the other's
            continue
        return folder
    return TaskFolder()


def give_back(folder: TaskFolder, ended: bool) -> None:
    """Removes a task's folder, or keeps it empty for the next.

    Args:
        ended: Whether nothing of the task runs any more, which could still use it.
    """
    if ended and folder.clear():
        _spare.append(folder)
    else:
        remove_folder(folder.path)
