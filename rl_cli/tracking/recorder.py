"""Records a run's metrics offline: `python -P -m rl_cli.tracking.recorder RUN_DIR`.

A process of its own without a key, which never uses the network: whatever W&B does, this one does not notice.
It follows metrics.jsonl into RUN_DIR/wandb until the run is over. A resumed run gets another segment of the
same W&B run, which begins after the checkpoint. With `--lacking FILE FOLDER` it records the rows that FILE
names, below FOLDER, and ends.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.core.files import read_json, write_json
from rl_cli.runs.attempts import read_resume
from rl_cli.runs.progress import Reader, Row
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over
from rl_cli.runs.tracking_file import recorded, write_tracking
from rl_cli.tracking.rows import Key, as_logged, key_of
from rl_cli.tracking.session import alert, brief, close_session, open_session, prepare

LOOK_EVERY_SECONDS = 1.0


class Position:
    """How far the segments of a run go, kept in wandb/position.json: {"attempt", "steps": {axis: last step}}.

    The newest rows may not have got into the segment if this process was killed: an upload is judged by what
    W&B has, not by this.
    """

    def __init__(self, run: RunDir) -> None:
        self._path = run.path / "wandb" / "position.json"
        resume = read_resume(run.path)
        self._attempt = resume.attempt if resume else 1
        self.steps: dict[str, int] = {}
        with suppress(OSError, ValueError, TypeError, KeyError):
            record = read_json(self._path)
            self.steps = {str(axis): int(step) for axis, step in record["steps"].items()}
            if resume and record["attempt"] != resume.attempt:
                kept = {"global_step": min(self.steps.get("global_step", 0), resume.step)}
                self.steps = {**self.steps, **kept} if resume.step else {}  # at 0 it begins at the beginning
        self._old = dict(self.steps)

    def is_new(self, key: Key) -> bool:
        """Whether no earlier process has recorded that row; takes note of it."""
        axis, step, _ = key
        new = step > self._old.get(axis, -1)
        if new:
            self.steps[axis] = step
        return new

    def save(self) -> None:
        write_json(self._path, {"attempt": self._attempt, "steps": self.steps})


def follow(run: RunDir, session: Any, on_rows: Callable[[int], None] = lambda rows: None) -> None:
    """Logs every row until the run is over, then how it ended.

    Args:
        run: The run.
        session: The wandb session.
        on_rows: Told how many rows of the file have been taken, whenever there are more.
    """
    reader, position = Reader(run), Position(run)
    taken: set[Key] = set()
    """As they are counted when they are read back: two rows of one step and moment are one."""
    newest: Row = {}
    while True:
        state = run.state()
        before = len(taken)
        for rows, _ in reader.batches():
            for row in rows:
                newest |= (logged := as_logged(row))
                if key := key_of(row):
                    taken.add(key)
                    if position.is_new(key):
                        session.log(logged)
        if len(taken) > before:
            with suppress(OSError):  # a full disk is the run's business
                position.save()
                on_rows(len(taken))
        if is_over(state):
            break
        time.sleep(LOOK_EVERY_SECONDS)
    close_session(session, state, newest)


def record(run: RunDir, alone: bool) -> int:
    """Records all of a run while it goes on; returns the exit code.

    Args:
        run: The run.
        alone: Whether nobody uploads it, so that tracking.json is written here.
    """
    try:
        session = open_session(run, "offline", run.path)
    except Exception as error:  # whatever wandb raises: the run goes on without it
        alert(run, f"W&B gets nothing of this run: {brief(error)}")
        return 1
    run.append_event("wandb", mode="offline", url=None, dir=str(Path(session.dir).parent))
    follow(run, session, lambda rows: _tell(run, rows) if alone else None)
    return 0


def _tell(run: RunDir, rows: int) -> None:
    """tracking.json of a run that is recorded only: nobody uploads it."""
    known = recorded(run) or {}
    record = {"mode": "offline", "state": "recorded", "rows": rows, "uploaded": known.get("uploaded", 0)}
    record |= dict.fromkeys(("remote_state", "remote_step", "checked", "url"))
    write_tracking(run, {**record, "error": None})


def record_lacking(run: RunDir, lacking: set[Key], folder: Path) -> None:
    """A segment below `folder` with these rows only."""
    session = open_session(run, "offline", folder)
    newest: Row = {}
    for rows, _ in Reader(run).batches():
        for row in rows:
            newest |= (logged := as_logged(row))
            if key_of(row) in lacking:
                session.log(logged)
    close_session(session, run.state(), newest)


def main(arguments: list[str]) -> int:
    run = RunDir(arguments[0])
    prepare(run)
    if arguments[1:2] == ["--lacking"]:
        lacking = {(str(axis), int(step), float(when)) for axis, step, when in read_json(arguments[2])}
        record_lacking(run, lacking, Path(arguments[3]))
        return 0
    return record(run, alone=arguments[1:2] == ["--alone"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
