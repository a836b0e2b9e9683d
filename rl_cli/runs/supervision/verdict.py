"""How a run ends: why its trainer was ended, if it was, and what it said and did itself."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rl_cli.runs.run_dir import RunDir, asked_by
from rl_cli.runs.state_file import ending_of
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.workers import Workers

FULL_BYTES = 1_000_000
"""With less free than this, the disk is taken to be what a trainer died of."""


@dataclass
class Verdict:
    """Why the trainer is being ended, and what the run becomes then."""

    state: str
    reason: str
    kill_at: float
    """time.monotonic() at which its process tree is ended."""
    asked: bool
    """Whether it was given time to end by itself."""
    gone: bool = False
    """The run's directory is not where the trainer writes."""
    forced: bool = False
    """It did not end by itself: it was killed."""


def ending(
    run: RunDir,
    workers: Workers,
    verdict: Verdict | None,
    request: Mapping[str, Any] | None,
    step: int = 0,
) -> tuple[str, str]:
    """(state, reason), judged by the trainer's exit file, its exit code, and why it was ended.

    Args:
        run: The run.
        workers: Its processes; the trainer has ended, or was never started.
        verdict: Why it was ended; None: it ended by itself.
        request: The request to stop, if there was one.
        step: The newest GRPO step that has figures; 0 before the first.
    """
    code = workers.trainer.code if workers.trainer else None
    record = run.exit("trainer")
    if record and not (verdict and verdict.gone):
        told = {"state": verdict.state, "reason": verdict.reason} if verdict else None
        if told is None and record["outcome"] == "stopped" and request:
            told = {"state": "stopped", "reason": asked_by(request)}
        end = ending_of(record, told)
        return end["state"], end["reason"]
    if verdict and (verdict.forced or verdict.gone or code is None):
        late = " (the trainer did not end by itself in time)" if verdict.forced and verdict.asked else ""
        return verdict.state, verdict.reason + late
    if shutil.disk_usage(run.path).free < FULL_BYTES:
        return "failed", f"the trainer {children.how_it_ended(code)}: the disk is full"
    return "failed", workers.how_the_trainer_ended(step)
