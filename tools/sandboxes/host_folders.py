"""Folders of the host that a sandbox needs for a while; what a killed process left is removed by the next.

Their names carry the process they belong to, never anything of a task.
"""

from __future__ import annotations

import atexit
import os
import secrets
import tempfile
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path

from tools.sandboxes.owners import is_left_over, owner

PREFIX = "rl-cli-sandboxes-"


def new_folder() -> Path:
    """An empty folder for this user alone. Blocks for the time of a few calls of the file system.

    Raises:
        OSError
    """
    with _lock:
        folder = _own_folder(os.getpid()) / secrets.token_hex(8)
    folder.mkdir(mode=0o700)
    return folder


def remove_folder(folder: Path) -> None:
    """Removes it with all that is in it, whatever the modes and however deep; what will not go stays. Blocks.

    Every folder in it is moved to its top before it is entered: no path gets long, and what is mounted in it,
    which cannot be moved, is not entered.
    """
    waiting = [folder]
    for here in waiting:
        with suppress(OSError):
            here.chmod(0o700)
            for entry in list(os.scandir(here)):
                with suppress(OSError):
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry)
                        continue
                    moved = folder / secrets.token_hex(8)
                    try:
                        os.rename(entry, moved)
                    except PermissionError:  # a folder that may not be written to cannot be moved
                        os.chmod(entry, 0o700)
                        os.rename(entry, moved)
                    waiting.append(moved)
    for here in reversed(waiting):
        with suppress(OSError):
            here.rmdir()


_lock = threading.Lock()


@cache
def _own_folder(pid: int) -> Path:
    place = Path(tempfile.gettempdir())
    for entry in os.scandir(place):
        if entry.name.startswith(PREFIX) and is_left_over(entry.name.removeprefix(PREFIX)):
            with suppress(FileNotFoundError):  # another program of ours removes it, too
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    remove_folder(Path(entry))
    folder = place / f"{PREFIX}{owner()}"
    folder.mkdir(mode=0o700)  # refuses what somebody else has put there
    atexit.register(_remove_if_own, folder, pid)
    return folder


def _remove_if_own(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a fork
        remove_folder(folder)
