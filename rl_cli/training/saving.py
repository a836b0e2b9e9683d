"""What a worker does with a checkpoint that it has written."""

from __future__ import annotations

import os
from pathlib import Path

from rl_cli.runs import checkpoints
from rl_cli.runs.retention import to_remove
from rl_cli.runs.run_dir import RunDir


def save(run: RunDir, step: int, folder: Path) -> Path:
    """Makes a complete folder the run's checkpoint of a step, and removes those that are kept no longer.

    The figures up to the step are on the disk before it: a run that is resumed from it has no gap.
    """
    with (run.path / "metrics.jsonl").open("rb") as metrics:
        os.fsync(metrics.fileno())
    target = checkpoints.place(run.path, step, folder)
    run.append_event("checkpoint", step=step, path=str(target))
    for path in to_remove(run):
        checkpoints.remove(path)
    return target
