"""The processes that bring a run to W&B, as its supervisor sees them: they may hang, and end in time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.tracking_mode import environment_for, wanted_mode
from rl_cli.runs.tracking_file import FINAL, how_to_sync, recorded, write_tracking

RECORD_SECONDS = 12.0
"""How long the recorder may take to end its segment once the run is over."""
UPLOAD_SECONDS = 90.0
"""How long the uploader may take after that, before it is ended."""

MOST_RESTARTS = 10


class TrackingChildren:
    """The recorder (or the online session) and, where there is a key, the uploader.

    Args:
        run: The run.
        tracking: The config's tracking.wandb.
        backend: The config's backend.name.
    """

    def __init__(self, run: RunDir, tracking: str, backend: str) -> None:
        self.run, self.mode = run, wanted_mode(tracking, backend)
        self.children: dict[str, children.Child | children.Adopted] = {}
        self.restarts = 0

    def start(self) -> dict[str, Any]:
        """Starts those that do not run; returns the identities of all, for state.json."""
        if self.mode == "off":
            return {}
        if self.mode == "online":
            self._start("recorder", "wandb", "rl_cli.tracking.online", True)
        else:
            alone = ["--alone"] if self.mode == "offline" else []
            self._start("recorder", "wandb", "rl_cli.tracking.recorder", False, *alone)
        if self.mode != "offline":
            self._start("uploader", "uploader", "rl_cli.tracking.uploader", True, self.mode)
        return {name: child.identity.to_dict() for name, child in self.children.items()}

    def _start(self, name: str, log: str, module: str, key: bool, *arguments: str) -> None:
        if name in self.children:
            return
        argv = python_module(module, str(self.run.path), *arguments)
        environment = environment_for(key)
        try:
            child = children.start(argv, self.run.log_path(log), cwd=self.run.path, env=environment)
        except OSError as error:
            message = f"W&B gets nothing of this run: its process could not be started ({error})"
            self.run.append_event("alert", rule="wandb", message=message, action="none is needed", figures={})
        else:
            self.children[name] = child

    def adopt(self, processes: Mapping[str, Any]) -> dict[str, Any]:
        """Goes on with the processes that the last supervisor had started; starts those that are gone.

        Args:
            processes: Those of state.json, by name.
        """
        for name in ("recorder", "uploader"):
            if name in processes:
                identity = ProcessIdentity.from_dict(processes[name])
                if identity.alive():
                    self.children[name] = children.Adopted(identity)
                else:
                    kill_tree(identity, grace_seconds=0)  # what it left behind
        return self.start()

    def look_after(self) -> dict[str, Any]:
        """Starts again what was killed although the run goes on; returns new identities, mostly none.

        One that ended by itself has said why in its log and stays away.
        """
        ended = {name: child.code for name, child in self.children.items() if child.ended(0)}
        killed = [name for name, code in ended.items() if code is None or code < 0]
        if not killed or self.restarts >= MOST_RESTARTS:
            return {}
        self.restarts += 1
        for name in killed:
            kill_tree(self.children.pop(name).identity, grace_seconds=0)  # what it left behind
        return self.start()

    def finish(self) -> None:
        """Waits a bounded time for them to end by themselves, then ends them with their helper processes."""
        for name, seconds in (("recorder", RECORD_SECONDS), ("uploader", UPLOAD_SECONDS)):
            if child := self.children.get(name):
                deadline = time.monotonic() + seconds
                while not child.ended(0.5) and time.monotonic() < deadline:
                    pass
                kill_tree(child.identity, grace_seconds=1)
        record = recorded(self.run)
        if record and "uploader" in self.children and record["state"] not in FINAL:
            error = f"W&B did not take the rest in time; {how_to_sync(self.run)}"
            write_tracking(self.run, {**record, "state": "incomplete", "error": error})
