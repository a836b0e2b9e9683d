"""The newest rollouts that a run has shown, for the rules that read them."""

from __future__ import annotations

from collections import deque
from typing import Any

from rl_cli.core.files import tail_jsonl
from rl_cli.runs.run_dir import RunDir

KEPT = 64
CHUNK_BYTES = 1 << 20


class RecentSamples:
    """Follows samples.jsonl; costs one `stat` where nothing is new."""

    def __init__(self, run: RunDir) -> None:
        self._path = run.path / "samples.jsonl"
        self._offset = self._size = 0
        self._rows: deque[dict[str, Any]] = deque(maxlen=KEPT)

    def read(self) -> list[dict[str, Any]]:
        """At most KEPT rows, oldest first."""
        size = self._path.stat().st_size if self._path.exists() else 0
        if size != self._size:
            if size < self._size:
                self._offset = 0
                self._rows.clear()
            self._offset = max(self._offset, size - CHUNK_BYTES)
            rows, self._offset = tail_jsonl(self._path, self._offset, CHUNK_BYTES)
            self._rows.extend(rows)
            self._size = size
        return list(self._rows)
