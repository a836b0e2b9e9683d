"""What W&B has of one run of ours, found out by reading it back: nothing else tells the truth."""

from __future__ import annotations

import math
import os
import time
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.runs.progress import Reader
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over
from rl_cli.runs.tracking_file import what_is_lacking
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.errors import WandbError
from rl_cli.tracking.rows import Key, Row, figures_of, key_of, key_of_logged
from rl_cli.tracking.sync_command import files_of, segments

UNAUTHORISED = ("no_key", "wrong_key", "forbidden")


class ReadBack:
    """Compares metrics.jsonl, which decides, with the history at W&B.

    Args:
        run: The run.
        asker: Asks W&B; ended by whoever made it.
    """

    def __init__(self, run: RunDir, asker: Asker) -> None:
        self.run, self.asker = run, asker
        self.wanted: dict[Key, float] = {}
        """Rows of metrics.jsonl -> time.monotonic() at which each was seen here."""
        self.have: set[Key] = set()
        self.files: set[str] | None = set()
        """Names of the run's files that W&B has; None if it does not list them."""
        self.sent_files: set[str] = set()
        """Names of files that an upload was to bring."""
        self.error: WandbError | None = None
        """Why the last question got no answer."""
        self.remote: dict[str, Any] = {}
        """How W&B described the run at last; {} before it knows it."""
        self.checked: float | None = None
        """Unix time of the last answer."""
        self.grew = time.monotonic()
        """time.monotonic() at which W&B last had more rows or files than before."""
        self.tried_segments = False
        """Whether an upload of the segments as they were recorded has been tried."""
        self.differs: dict[str, Any] | None = None
        """Of the newest row that W&B has otherwise: {"step", "metrics": {name: [here, there]}}."""
        self._figures: dict[Key, Row] = {}
        """Figures of rows that have not been read back."""
        self._project = str(run.config_dict()["tracking"]["project"])
        self._entity = os.environ.get("WANDB_ENTITY")
        self._reader = Reader(run)
        self._metrics: int | None = None
        self._next = 0

    def look_here(self) -> None:
        """Takes in what metrics.jsonl has gained; a file that was replaced is read anew."""
        path = self.run.path / "metrics.jsonl"
        inode = path.stat().st_ino if path.exists() else None
        if inode != self._metrics:
            self._metrics, self.wanted, self._figures = inode, {}, {}
        now = time.monotonic()
        for rows, _ in self._reader.batches():
            for row in rows:
                if (key := key_of(row)) and key not in self.wanted:
                    self.wanted[key] = now
                    if key not in self.have:
                        self._figures[key] = figures_of(row)

    def look_there(self, deadline: float) -> bool:
        """Reads what W&B has gained; returns whether it answered.

        Args:
            deadline: Seconds.
        """
        before = len(self.have), len(self.files or ())
        try:
            self._ask(deadline)
        except WandbError as error:
            known = f"W&B has no run {self.path}"
            self.error = None if error.message == known else error  # nothing has arrived yet
            if self.error:
                return False
        else:
            self.error = None
        self.checked = time.time()
        if (len(self.have), len(self.files or ())) > before:
            self.grew = time.monotonic()
        return True

    def _ask(self, deadline: float) -> None:
        until = time.monotonic() + deadline
        if self._entity is None:
            self._entity = str(self.asker.ask("viewer", {}, deadline)["entity"])
        question = {"path": self.path, "min_step": self._next}
        self.remote = self.asker.ask("rows", question, max(1.0, until - time.monotonic()), self._take)
        if names := self.lacking_files():
            self._ask_for_files(names, max(1.0, until - time.monotonic()))

    def _ask_for_files(self, names: set[str], deadline: float) -> None:
        try:
            answer = self.asker.ask("files", {"path": self.path, "names": sorted(names)}, deadline)
        except WandbError as error:
            if error.kind != "refused":
                raise
            self.files = None
        else:
            self.files = (self.files or set()) | set(answer["files"])

    @property
    def path(self) -> str:
        return f"{self._entity}/{self._project}/{self.run.id}"

    def _take(self, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            if key := key_of_logged(row):
                self.have.add(key)
                self._compare(key, row)
            self._next = max(self._next, int(row.get("_step", -1)) + 1)

    def _compare(self, key: Key, row: Row) -> None:
        axis, step, _ = key
        here, there = self._figures.pop(key, {}), figures_of(row, axis)
        pairs = {name: [here[name], there[name]] for name in here if name in there}
        metrics = {name: pair for name, pair in pairs.items() if not math.isclose(*pair, rel_tol=1e-9)}
        if metrics:
            self.differs = {"step": step, "metrics": metrics}

    def lacking(self, older_than: float = 0.0) -> set[Key]:
        """Rows that W&B does not have.

        Args:
            older_than: Only those that have been here for so many seconds.
        """
        latest = time.monotonic() - older_than
        return {key for key, seen in self.wanted.items() if key not in self.have and seen <= latest}

    def lacking_files(self) -> set[str]:
        """Names of recorded files that W&B does not have; they are sent, and missed, at the end of a run."""
        if self.files is None or not is_over(self.run.state()):
            return set()
        return (self.sent_files | files_of(segments(self.run))) - self.files

    def is_whole(self) -> bool:
        """Whether W&B has every row and every file, by the last answer."""
        return not self.lacking() and not self.lacking_files()

    def record(self, mode: str, state: str, error: str | None = None) -> dict[str, Any]:
        """As tracking.json says it."""
        steps = [step for axis, step, _ in self.have if axis == "global_step"]
        files = sorted(self.lacking_files())
        return {
            "mode": mode,
            "state": state,
            "rows": len(self.wanted),
            "uploaded": len(self.wanted) - len(self.lacking()),
            "remote_state": self.remote.get("state"),
            "remote_step": max(steps, default=None),
            "checked": self.checked,
            "error": error,
            "url": self.remote.get("url"),
            **({"files_lacking": files} if files else {}),
            **({"differs": self.differs} if self.differs else {}),
        }

    def end_is_told(self) -> bool:
        """Whether W&B's state of the run, which is over here, is not plainly another one."""
        good = self.run.state()["state"] in ("finished", "stopped")
        wrong = ("failed", "crashed") if good else ("finished",)
        return self.remote.get("state") not in (None, "running", *wrong)

    def is_hopeless(self) -> bool:
        """Whether the last question failed for a reason that another run would meet too."""
        return self.error is not None and self.error.kind in (*UNAUTHORISED, "down", "slow", "rate_limited")

    def trouble(self) -> str:
        """ok, unavailable or unauthorised, by the last question."""
        if self.error is None:
            return "ok"
        return "unauthorised" if self.error.kind in UNAUTHORISED else "unavailable"


def conclusion(back: ReadBack, mode: str) -> dict[str, Any]:
    """tracking.json at the end of an upload: done, or incomplete with what is lacking and why."""
    back.look_here()
    if back.is_whole() and back.checked is not None and back.trouble() == "ok":
        return back.record(mode, "done")
    why = one_line(back.error.message, 200) if back.error else "they have not arrived in time"
    return back.record(mode, "incomplete", why)


def what_lacks(record: dict[str, Any]) -> str:
    """Of an upload that is incomplete, in one sentence."""
    if lacks := what_is_lacking(record):
        return f"W&B lacks {lacks}: {record['error']}; all is kept here"
    return f"whether W&B has everything is not known: {record['error']}; all is kept here"
