"""The record of a conversation: sessions/<id>.jsonl, one event a line, appended as it happens."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rl_cli.core.files import append_jsonl


class Transcript:
    """Appends to one session's file. A crash loses at most the line that was being written."""

    def __init__(self, home: Path, model: str) -> None:
        now = datetime.now(UTC)
        self.id = f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        self.path = home / "sessions" / f"{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.record("session", id=self.id, model=model)

    def record(self, kind: str, **fields: Any) -> None:
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        append_jsonl(self.path, {"time": time, "kind": kind, **fields})
