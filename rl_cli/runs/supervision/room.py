"""How much disk and memory is left to a run, over the last minutes."""

from __future__ import annotations

import shutil
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.runs.rules.view import Room

EVERY_SECONDS = 10.0
KEPT = 90
"""Looks that are kept: a quarter of an hour."""
CGROUP = Path("/sys/fs/cgroup")


class RoomWatch:
    """Looks at most every EVERY_SECONDS.

    Args:
        folder: Where the run writes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._disk: deque[Room] = deque(maxlen=KEPT)
        self._memory: deque[Room] = deque(maxlen=KEPT)
        self._looked: float | None = None

    def look(self, now: float) -> dict[str, Any]:
        """The fields `disk` and `memory` of a View.

        Args:
            now: Seconds of a clock that only goes forward.
        """
        if self._looked is None or now - self._looked >= EVERY_SECONDS:
            self._looked = now
            with suppress(OSError):
                usage = shutil.disk_usage(self.folder)
                self._disk.append(Room(now, usage.free, usage.total))
            self._memory.append(_memory(now))
        return {"disk": list(self._disk), "memory": list(self._memory)}


def _memory(now: float) -> Room:
    """What this machine can still give, or the container that this process runs in, if that is less."""
    import psutil

    machine = psutil.virtual_memory()
    free, total = float(machine.available), float(machine.total)
    with suppress(OSError, ValueError):  # no container, or one without a limit ("max")
        limit = float((CGROUP / "memory.max").read_text())
        used = float((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        cached = float(stat.get("inactive_file", 0))
        if limit - used + cached < free:
            free, total = limit - used + cached, limit
    return Room(now, free, total)
