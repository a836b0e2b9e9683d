"""A directory that is held open, so that it is found again when somebody moves it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


class HeldFolder:
    """Knows where a directory is now. Not covered: a move to another file system, which is a deletion here.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def where(self) -> Path | None:
        """Its path now; None if it was deleted (or moved, on systems that do not say where to)."""
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._descriptor), os.stat(self.path)):
                return self.path
        with suppress(OSError):
            found = Path(os.readlink(f"/proc/self/fd/{self._descriptor}"))
            if found.is_dir():
                self.path = found
                return found
        return None
