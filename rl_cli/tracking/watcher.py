"""Following a run that somebody else started: its local copy, its state, its alerts.

Whoever holds the run's lock pulls; all others follow the files. W&B's word on the state is taken as a word:
rows that still come say more than `crashed`, and a W&B that cannot be reached says nothing about the run.
Nothing here stops a run: findings of the health rules are alerts.
"""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import RlCliError, WorkFailed
from rl_cli.core.files import explain_os_error
from rl_cli.runs.progress import Progress, Reader, Row
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import StateWriter, is_over
from rl_cli.runs.tracking_file import read_tracking
from rl_cli.runs.watched import is_watched, path_of, total_steps
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.errors import USAGE, WandbError
from rl_cli.tracking.local_copy import LocalCopy
from rl_cli.tracking.remote_state import RemoteState
from rl_cli.tracking.watch_alerts import WatchAlerts

LIVE_SECONDS = 30.0
"""Between two looks while somebody looks on; the first ones come sooner."""
FIRST_SECONDS = 2.0
CONTACT_SECONDS = 45.0
PULL_SECONDS = 120.0
"""Deadline of one look; what has come by then is kept."""
PULL_ROWS = 20_000
LONGEST_PAUSE = 600.0
REFRESH_SECONDS = 150.0
"""For one look at all that is new, by whoever cannot go on without."""


class Watcher:
    """Keeps a watched run up to date from a thread of its own.

    Args:
        run: The run.
        every: Seconds between two looks.
        checked_elsewhere: Somebody calls `feed` and `check` with a Progress of the run, so that none is built
            here.
    """

    def __init__(self, run: RunDir, every: float = LIVE_SECONDS, checked_elsewhere: bool = False) -> None:
        self.run, self.every = run, every
        self.path = path_of(run)
        self._elsewhere = checked_elsewhere
        self._asker = Asker()
        self._ending = threading.Event()
        self._to_check, self._checked = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True, name="watcher")
        self._figures: dict[str, Any] = {}
        self._error: RlCliError | None = None
        self._alerts = WatchAlerts(run)
        self.caught_up = threading.Event()
        """All that W&B has was read once, or W&B did not answer."""

    def start(self) -> None:
        """Makes sure that there is such a run, and begins.

        Raises:
            WandbError: There is none, the key is missing or wrong; or W&B does not answer and nothing is
                known of the run here. A directory that holds nothing is removed.
        """
        try:
            self._asker.ask("run_state", {"path": self.path}, CONTACT_SECONDS)
        except WandbError as error:
            known = (self.run.path / "metrics.jsonl").exists()
            if not known and self.run.state()["state"] == "created":
                shutil.rmtree(self.run.path, ignore_errors=True)
            if error.kind in USAGE or not known:
                self._asker.close()
                raise
        self._thread.start()

    def stop(self) -> None:
        """Ends watching; the run goes on."""
        self._ending.set()
        self._checked.set()
        self._asker.close()
        if self._thread.is_alive():
            self._thread.join(20)

    @property
    def goes_on(self) -> bool:
        """Whether it still looks: a run that was over when it began may go on by now."""
        return self._thread.is_alive()

    def feed(self, progress: Progress, rows: list[Row], events: list[Row], rows_left: int) -> None:
        """Takes what is new into `progress`, and judges it row by row (see `WatchAlerts.feed`)."""
        self._alerts.feed(progress, rows, events, rows_left)

    def check(self, progress: Progress) -> None:
        """Judges the run by what its files add up to, if there is something new.

        Raises:
            RlCliError: Watching has ended, as when the disk is full.
        """
        if self._error:
            raise self._error
        if self._to_check.is_set():
            self._to_check.clear()
            self._judge(progress)
            self._checked.set()

    def _judge(self, progress: Progress) -> None:
        self._alerts.judge(progress)
        self._figures = {**progress.figures(), "judged": self._alerts.judged}

    def _work(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    with self.run.locked() as writer:
                        self._pull_on(writer)
                        return
                except TimeoutError:  # another process pulls
                    self.caught_up.set()
                    self._ending.wait(min(self.every, 5.0))
        except OSError as error:
            self._error = explain_os_error(error, self.run.path)
        except Exception as error:  # a thread's exception would be seen by nobody
            self._error = WorkFailed(f"watching {self.run.id} ended: {type(error).__name__}: {error}")
        finally:
            self.caught_up.set()
            if self._error:
                with suppress(OSError):
                    self.run.append_event("wandb", mode="watch", error=one_line(str(self._error), 300))

    def _pull_on(self, writer: StateWriter) -> None:
        copy = LocalCopy(self.run)
        remote = RemoteState(self.run, writer, copy)
        progress, reader = Progress(judged_only=True), Reader(self.run)
        judged = writer.state.get("judged")
        self._alerts.judged = judged if isinstance(judged, int) else -1
        pause = FIRST_SECONDS
        while not self._ending.is_set():
            if not writer.folder.is_dir():
                return
            try:
                rows = self._pull(copy, remote)
                pause = min(self.every, pause * 1.5)
                if remote.cut_to is not None:
                    self._alerts.cut(remote.cut_to)
                if rows >= PULL_ROWS or remote.reads_anew:
                    continue
            except WandbError as error:
                if self._ending.is_set():
                    return
                self.caught_up.set()
                remote.unreachable(error)
                pause = min(LONGEST_PAUSE, max(pause * 2, error.retry_after or 0.0))
                self._ending.wait(pause)
                continue
            if remote.is_end:
                self._asker.rest()  # what is left to do needs the memory: the report
            self._alerts.quiet_seconds = remote.quiet_seconds
            self._alerts.running_seconds = remote.running_seconds
            self._alerts.plan(total_steps(remote.config or {}))
            if not self._elsewhere:
                for some_rows, some_events in reader.batches():
                    self.feed(progress, some_rows, some_events, reader.rows_left)
                self._judge(progress)
            else:
                self._checked.clear()
                self._to_check.set()
                self.caught_up.set()
                self._checked.wait(10)
            remote.write(self._figures)
            self.caught_up.set()
            if is_over(writer.state):
                return
            self._ending.wait(pause)

    def _pull(self, copy: LocalCopy, remote: RemoteState) -> int:
        """Reads what is new; returns how many rows that was."""
        wanted = {"min_step": copy.next_step, "most": PULL_ROWS, "config": remote.config is None}
        try:
            found = self._asker.ask("rows", {"path": self.path, **wanted}, PULL_SECONDS, copy.take)
        finally:
            copy.close_step(False)
        rows = int(found["sent"])
        remote.look(found, rows)
        copy.close_step(last=rows == 0 or remote.is_end)
        return rows


def refresh(run: RunDir, seconds: float = REFRESH_SECONDS) -> str | None:
    """Looks at W&B once, so that the files of a watched run say how it is now; nothing for any other run.

    Returns:
        Why they may be old, if W&B did not answer; None if they are up to date.

    Raises:
        WandbError: As `Watcher.start`, where nothing is known of the run.
    """
    if not is_watched(run):
        return None
    watcher = Watcher(run)
    try:
        watcher.start()
        if not watcher.caught_up.wait(seconds):
            return f"W&B's history could not be read within {seconds:.0f} s: what is here may be old"
    except WandbError as error:
        if not (run.path / "metrics.jsonl").exists():
            raise
        return f"what is here may be old: {error}"
    finally:
        watcher.stop()
    record = read_tracking(run) or {}
    return f"W&B did not answer: what is here may be old ({record['error']})" if record.get("error") else None


@contextmanager
def watched(
    run: RunDir, every: float = LIVE_SECONDS, checked_elsewhere: bool = False
) -> Iterator[Watcher | None]:
    """Keeps a watched run up to date meanwhile; nothing at all for any other run (see `Watcher`).

    Raises:
        WandbError: As `Watcher.start`.
    """
    if not is_watched(run):
        yield None
        return
    watcher = Watcher(run, every, checked_elsewhere)
    try:
        watcher.start()
        yield watcher
    finally:
        watcher.stop()


@asynccontextmanager
async def watching(run: RunDir, every: float = LIVE_SECONDS) -> AsyncIterator[None]:
    """As `watched`, for an event loop. A run that was over is looked at first: it may go on by now.

    Raises:
        WandbError: As `Watcher.start`.
    """
    if not is_watched(run):
        yield
        return
    watcher = Watcher(run, every)
    try:
        await asyncio.to_thread(watcher.start)
        if is_over(run.state()):
            await asyncio.to_thread(watcher.caught_up.wait, REFRESH_SECONDS)
        yield
    finally:
        await asyncio.to_thread(watcher.stop)
