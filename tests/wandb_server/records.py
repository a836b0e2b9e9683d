"""What the stand-in keeps of one W&B run."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass
class RunRecord:
    entity: str
    project: str
    name: str
    storage_id: str
    display_name: str
    created: float = field(default_factory=time.time)
    config: dict[str, Any] = field(default_factory=dict)
    """{"name": {"value": ...}}, as it comes."""
    summary: dict[str, Any] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    group: str | None = None
    job_type: str | None = None
    notes: str | None = None
    host: str | None = None
    history: list[Row] = field(default_factory=list)
    """By line offset; {} where a line never came."""
    events: list[Row] = field(default_factory=list)
    """System metrics."""
    console: dict[int, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    state: str = "running"
    exit_code: int | None = None
    heartbeat: float = field(default_factory=time.time)
    stopped: bool = False
    """Whether somebody pressed stop."""

    @property
    def rows(self) -> list[Row]:
        """The history without gaps."""
        return [row for row in self.history if row]

    @property
    def last_step(self) -> int:
        return max((int(row.get("_step", -1)) for row in self.rows), default=-1)

    def values(self, axis: str, key: str) -> dict[Any, Any]:
        """The last value of `key` for each value of `axis`."""
        return {row[axis]: row[key] for row in self.rows if axis in row and key in row}

    def take(self, body: dict[str, Any]) -> None:
        """One post of the file stream."""
        self.heartbeat = time.time()
        for name, chunk in (body.get("files") or {}).items():
            offset, lines = int(chunk.get("offset", 0)), chunk.get("content", [])
            if name == "wandb-history.jsonl":
                _put(self.history, offset, [json.loads(line) for line in lines])
            elif name == "wandb-events.jsonl":
                _put(self.events, offset, [json.loads(line) for line in lines])
            elif name == "wandb-summary.json":
                self.summary = json.loads(lines[-1])
            elif name == "output.log":
                self.console.update({offset + i: line for i, line in enumerate(lines)})
        if body.get("complete"):
            self.exit_code = int(body.get("exitcode", 0))
            self.state = "failed" if self.exit_code else "finished"
        else:
            self.state = "running"


def _put(rows: list[Row], offset: int, new: list[Row]) -> None:
    rows.extend({} for _ in range(offset - len(rows)))
    rows[offset : offset + len(new)] = new
