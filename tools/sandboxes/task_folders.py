"""Folders of tasks on the host, used again once nothing of their task is in them.

A file system is slow in making folders where many were removed a moment ago.
"""

from __future__ import annotations

import os
import secrets
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from tools.sandboxes.agent.leaving import empty, state_of
from tools.sandboxes.host_folders import new_folder, remove_folder

PARTS = ["work", "home", "tmp", "private"]


class TaskFolder:
    """A folder of a task's own, with its parts in it, all empty. Blocks for a moment.

    Raises:
        OSError: There can be none.
    """

    def __init__(self) -> None:
        self.path = new_folder()
        for part in PARTS:
            (self.path / part).mkdir()
        self._made = state_of(str(self.path), PARTS)
        self._pid = os.getpid()

    def leaving(self) -> dict[str, Any]:
        """How an agent empties it, as `agent.leaving.take_away` takes it."""
        return {"parts": PARTS, "made": self._made}

    def next_path(self) -> Path:
        """A name that it may have for the next task."""
        return self.path.with_name(secrets.token_hex(8))

    def empty(self) -> bool:
        """Empties it of a task that has ended, and gives it another name; whether it could. Blocks."""
        try:
            if not empty(str(self.path), PARTS, self._made, lambda name: remove_folder(Path(name))):
                return False
            self.path = self.path.rename(self.next_path())
        except OSError:
            return False
        return True

    def give_back(self, ended: bool) -> None:
        """Keeps it for the next task if it can be emptied, else removes it. Blocks.

        Args:
            ended: Whether nothing of the task runs any more, which could still use it.
        """
        if ended and self.empty():
            _spare.append(self)
        else:
            remove_folder(self.path)


_spare: deque[TaskFolder] = deque()


def take_folder() -> TaskFolder:
    """One for a task. Blocks for a moment. Raises OSError."""
    with suppress(IndexError):
        while (folder := _spare.pop())._pid != os.getpid():  # in a fork they are the other's
            continue
        return folder
    return TaskFolder()
