"""The processes that do a run's work: its trainer, and the helpers that the trainer needs while it runs."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module
from rl_cli.runs.backends import WORKERS, helpers_of
from rl_cli.runs.logs import error_line, last_lines, telling_line
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.ports import Port

TERMINATE_SECONDS = 5.0
"""How long a process may take to end after SIGTERM."""
OTHERS = ("trainer", "recorder", "uploader")
"""Processes in state.json that are no helpers of the trainer."""
MOST_GENERATIONS = 5
"""Of orphans, each left by those that were ended before it."""
TAKEN = ("address already in use", "eaddrinuse")

Process = children.Child | children.Adopted


class Workers:
    """Started, or taken over from a supervisor that is gone.

    Args:
        run: The run.
        backend: Its backend's name.
    """

    def __init__(self, run: RunDir, backend: str) -> None:
        self.run, self.backend = run, backend
        self.trainer: Process | None = None
        self.helpers: dict[str, Process] = {}
        self.port: Port | None = None
        self.culprit = "trainer"
        """The process whose log says why the run failed."""
        self._survivors: dict[int, ProcessIdentity] = {}

    def start(self) -> dict[str, Any]:
        """Starts the helpers, then the trainer; on a port that no other run has.

        Returns:
            `processes` and `ports`, as state.json holds them.

        Raises:
            OSError: One cannot be started; those before it run.
        """
        self.port = Port()
        module = WORKERS[self.backend]
        address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port.number)}
        environment = {**children.worker_environment(), **address}
        folder = self.run.path
        for name in helpers_of(self.run, self.backend):
            argv = python_module(module, str(folder), "--process", name)
            self.helpers[name] = children.start(argv, self.run.log_path(name), cwd=folder, env=environment)
        argv = python_module(module, str(folder))
        self.trainer = children.start(argv, self.run.log_path("trainer"), cwd=folder, env=environment)
        known = {"trainer": self.trainer, **self.helpers}
        processes = {name: one.identity.to_dict() for name, one in known.items()}
        return {"processes": processes, "ports": {"master": self.port.number}}

    def adopt(self, processes: Mapping[str, Any]) -> ProcessIdentity:
        """Takes over those that state.json names; returns the trainer's identity."""
        known = {name: ProcessIdentity.from_dict(value) for name, value in processes.items()}
        self.trainer = children.Adopted(known["trainer"])
        self.helpers = {name: children.Adopted(one) for name, one in known.items() if name not in OTHERS}
        return known["trainer"]

    def failed_helper(self) -> str | None:
        """Why the trainer cannot go on: a helper has ended that it needs. One line."""
        for name, helper in self.helpers.items():
            if not helper.ended(0) or helper.code == 0:
                continue
            said = self.run.exit(name)
            if said is None or said["outcome"] != "finished":
                self.culprit = name
                line = telling_line(last_lines(self.run.log_path(name)))
                return f"{name} {children.how_it_ended(helper.code)}" + (f": {line}" if line else "")
        return None

    def how_the_trainer_ended(self, step: int = 0) -> str:
        """One line, with the step, and the error that its log tells of."""
        lines = last_lines(self.run.log_path("trainer"))
        code = self.trainer.code if self.trainer else None
        killed = code is not None and code < 0
        line = error_line(lines) if killed else telling_line(lines)
        if self.port and any(word in text.lower() for text in lines for word in TAKEN):
            line = f"port {self.port.number}, free when the run was started, was taken by another process"
        where = f" after step {step}" if killed and step else ""
        return f"the trainer {children.how_it_ended(code)}{where}" + (f": {line}" if line else "")

    def end(self) -> None:
        """Ends whatever of them still runs, with all that they started."""
        for one in (self.trainer, *self.helpers.values()):
            if one:
                self._end(one.identity)
        for _ in range(MOST_GENERATIONS):
            orphans = [one for one in children.unmarked_orphans() if one.pid not in self._survivors]
            for orphan in orphans:
                self._end(orphan)
            if not orphans:
                break
        children.reap_orphans()

    def end_trainer(self) -> None:
        """Ends the trainer, with all that it started."""
        assert self.trainer
        self._end(self.trainer.identity)

    def trainer_ended(self) -> bool:
        return self.trainer is not None and self.trainer.ended(0)

    def show_where_the_trainer_hangs(self) -> None:
        """SIGABRT makes Python's fault handler write the stack of every thread to the trainer's log."""
        assert self.trainer
        if not self.trainer.ended(0):
            os.kill(self.trainer.identity.pid, signal.SIGABRT)
            self.trainer.ended(1.0)

    def survivors(self) -> list[ProcessIdentity]:
        """What could not be ended and still runs."""
        return [one for one in self._survivors.values() if one.alive()]

    def _end(self, process: ProcessIdentity) -> None:
        """What outlives this is remembered: once its parents are gone, it may not be found again."""
        self._survivors |= {left.pid: left for left in kill_tree(process, TERMINATE_SECONDS)}
