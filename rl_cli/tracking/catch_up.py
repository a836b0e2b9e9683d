"""Uploading what W&B lacks of a run, whatever happened before: the rows of metrics.jsonl decide."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from rl_cli.core.files import write_json
from rl_cli.core.processes import kill_tree, python_module
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.tracking_mode import environment_for
from rl_cli.tracking.read_back import ReadBack
from rl_cli.tracking.rows import Key
from rl_cli.tracking.sync_command import files_of, segments, start_sync

RECORD_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.5


def one_round(
    back: ReadBack,
    seconds: float,
    over: bool,
    given_up: Callable[[], bool] = lambda: False,
    only: set[Key] | None = None,
) -> None:
    """Uploads once what W&B lacks; what has become of it, `back` finds out.

    First, where W&B has nothing at all, the recorded segments are uploaded: they hold system metrics too.
    Else the rows that it lacks, and no others, are recorded once more: nothing comes twice, and a segment
    that nobody can read does not matter.

    Args:
        back: Has just looked.
        seconds: The bound of it all.
        over: Whether the run has ended.
        given_up: Asked now and then; True ends the round.
        only: Just these of the rows that are lacking: a session of their own brings the others.
    """
    until = time.monotonic() + seconds
    run = back.run
    whole = segments(run) if not (back.have or back.tried_segments or only) else []
    back.tried_segments = back.tried_segments or not only
    folder = run.path / "wandb" / "catch-up"
    try:
        folders = whole or _record(run, only or back.lacking(), folder, until)
        if folders:
            child = start_sync(run, folders, over=over)
            try:
                _wait(child, until, given_up)
            finally:
                back.sent_files |= files_of(folders)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _record(run: RunDir, lacking: set[Key], folder: Path, until: float) -> list[Path]:
    """The segment with the rows that are lacking, recorded by a process without a key."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = folder / "lacking.json"
    write_json(names, sorted(lacking))
    argv = python_module("rl_cli.tracking.recorder", str(run.path), "--lacking", str(names), str(folder))
    env = environment_for(key=False)
    child = children.start(argv, run.log_path("wandb"), cwd=run.path, env=env)
    _wait(child, min(until, time.monotonic() + RECORD_SECONDS), lambda: False)
    return segments_below(folder)


def segments_below(folder: Path) -> list[Path]:
    return [path for path in (folder / "wandb").glob("offline-run-*-*") if any(path.glob("*.wandb"))]


def _wait(child: children.Child, until: float, given_up: Callable[[], bool]) -> None:
    """Until it has ended or must; leaves nothing of it behind."""
    try:
        while time.monotonic() < until and not given_up():
            if child.wait(LOOK_EVERY_SECONDS) is not None:
                break
    finally:
        kill_tree(child.identity, grace_seconds=0)
        child.wait(1)
