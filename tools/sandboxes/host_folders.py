"""Folders of the host that a sandbox needs for a while; what a killed process left is removed by the next.

Their names carry the process they belong to, never anything of a task.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

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
    """Removes it with all that is in it, whatever the modes. Blocks."""
    shutil.rmtree(folder, onerror=_make_writable)


_lock = threading.Lock()


@cache
def _own_folder(pid: int) -> Path:
    place = Path(tempfile.gettempdir())
    for entry in os.scandir(place):
        if not entry.name.startswith(PREFIX) or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
            continue
        if is_left_over(entry.name.removeprefix(PREFIX)):
            remove_folder(Path(entry))
    folder = place / f"{PREFIX}{owner()}"
    folder.mkdir(mode=0o700)  # refuses what somebody else has put there
    atexit.register(_remove_if_own, folder, pid)
    return folder


def _remove_if_own(folder: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a fork
        remove_folder(folder)


def _make_writable(function: Callable[..., Any], path: str, _: object) -> None:
    """A folder that may not be changed keeps its files: it is made writable, and all of it tried again."""
    try:
        if function in (os.unlink, os.rmdir, os.open, os.scandir, os.lstat):
            for folder in (os.path.dirname(path), path):
                if stat.S_ISDIR(os.lstat(folder).st_mode):
                    os.chmod(folder, 0o700)
            if stat.S_ISDIR(os.lstat(path).st_mode):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
    except OSError:  # somebody else removes it, or it is not ours: nothing depends on it
        pass
