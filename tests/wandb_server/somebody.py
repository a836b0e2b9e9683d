"""Runs that somebody else has logged: planted in the stand-in without a client."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable
from typing import Any

from tests.wandb_server.records import RunRecord
from tests.wandb_server.server import WandbServer


def plant_run(
    server: WandbServer,
    rows: Iterable[dict[str, Any]] = (),
    name: str = "abc123",
    project: str = "rl",
    state: str = "running",
    **fields: Any,
) -> RunRecord:
    """A run of `server.entity`; `fields` are those of RunRecord."""
    key = (server.entity, project, name)
    fields.setdefault("display_name", f"run {name}")
    run = RunRecord(*key, storage_id=f"storage-{name}", state=state, **fields)
    with server.lock:
        server.runs[key] = run
    log(server, run, rows)
    return run


def log(server: WandbServer, run: RunRecord, rows: Iterable[dict[str, Any]]) -> None:
    """Adds rows; one without `_step` or `_timestamp` gets what a client would give it."""
    with server.lock:
        for row in rows:
            step = row.get("_step", run.last_step + 1 if not run.history else run.history[-1]["_step"] + 1)
            run.history.append({"_step": step, "_timestamp": time.time(), **row})
        run.heartbeat = time.time()
        if run.history:
            run.summary = {**run.summary, **run.history[-1]}


def curve(count: int, start: int = 0, seed: int = 0, **more: Any) -> list[dict[str, Any]]:
    """Rows as TRL logs them through transformers: `count` steps that learn."""
    chance = random.Random(seed)
    return [
        {
            "train/global_step": step,
            "train/reward": 0.3 + 0.4 * (step - start) / count + chance.gauss(0, 0.01),
            "train/loss": 0.1 + chance.random() / 50,
            "train/entropy": 1.0 + chance.random() / 10,
            **more,
        }
        for step in range(start, start + count)
    ]
