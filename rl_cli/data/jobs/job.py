"""The detached work on a batch: what it was told, which process does it, how it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from rl_cli.core.errors import BadUsage, Refused, RlCliError, WorkFailed
from rl_cli.core.files import read_json, write_json
from rl_cli.core.processes import ProcessIdentity
from rl_cli.data.batch.folder import BatchFolder

Kind = Literal["generate", "compress"]
KINDS: tuple[Kind, ...] = ("generate", "compress")
BUSY = ("starting", "running")
START_LOCK_SECONDS = 60


class Job:
    """The latest work of one kind on a batch; it need not exist.

    Its state is {"state": "starting|running|finished|stopped|failed", "reason", "hint", "code", "process",
    "started", "ended"}; `code` is the exit code that the command of this work would have.

    Args:
        folder: The batch's.
        kind: What is done.
    """

    def __init__(self, folder: BatchFolder, kind: Kind) -> None:
        self.folder, self.kind = folder, kind
        self.place = folder.path / "jobs"
        self.order = self.place / f"{kind}.json"
        """What it was told to do."""
        self.log = self.place / f"{kind}.log"
        self._state = self.place / f"{kind}.state.json"

    def state(self) -> dict[str, Any]:
        """As it is true now; {} where there is none, or a damaged one."""
        try:
            state = read_json(self._state)
        except (OSError, ValueError):
            return {}
        if not isinstance(state, dict) or not isinstance(state.get("state"), str):
            return {}
        if state["state"] in BUSY and not _runs(state):
            gone = "its process is gone: killed, or the machine was started again"
            return {**state, "state": "stopped", "reason": gone, "code": 1}
        return state

    def process(self) -> ProcessIdentity | None:
        """Who does it now; None: nobody."""
        state = self.state()
        return ProcessIdentity.from_dict(state["process"]) if state.get("state") in BUSY else None

    def tell(self, state: str) -> None:
        """Says how far it is; only for the process that does it.

        Raises:
            OSError: It cannot be written.
        """
        started = self.state().get("started") if state != "starting" else None
        process = ProcessIdentity.current().to_dict()
        told = {"state": state, "process": process, "started": started or time.time()}
        write_json(self._state, told)

    def end(self, state: str, reason: str | None, code: int, hint: str | None = None) -> None:
        """Says how it ended; else as `tell`."""
        told = {"state": state, "reason": reason, "hint": hint, "code": code, "ended": time.time()}
        write_json(self._state, {**self.state(), **told})


@contextmanager
def only_starter(folder: BatchFolder) -> Iterator[None]:
    """Holds the right to start work on a batch on which nobody works.

    Raises:
        BadUsage: Somebody does, or begins to.
    """
    import filelock

    (folder.path / "jobs").mkdir(parents=True, exist_ok=True)
    try:
        with filelock.FileLock(folder.path / "jobs" / ".lock", timeout=START_LOCK_SECONDS):
            if (process := worker_of(folder)) is not None:
                raise BadUsage(
                    f"batch {folder.name} is being worked on by process {process.pid}",
                    "wait until it has ended, or stop it",
                )
            yield
    except filelock.Timeout:
        raise BadUsage(f"work on batch {folder.name} is being started by another process") from None


def worker_of(folder: BatchFolder) -> ProcessIdentity | None:
    """The process that works on a batch now, detached or at a terminal; None: nobody does."""
    for kind in KINDS:
        if (process := Job(folder, kind).process()) is not None:
            return process
    state = folder.state()
    return ProcessIdentity.from_dict(state["process"]) if state.get("state") == "running" else None


def failure_of(state: dict[str, Any]) -> RlCliError:
    """How work that failed did so, as its command would have said it."""
    kind = {2: BadUsage, 3: Refused}.get(state.get("code") or 1, WorkFailed)
    return kind(str(state.get("reason") or "it failed"), state.get("hint"))


def _runs(state: dict[str, Any]) -> bool:
    try:
        return ProcessIdentity.from_dict(state["process"]).alive() is not False
    except (KeyError, TypeError, ValueError):
        return False
