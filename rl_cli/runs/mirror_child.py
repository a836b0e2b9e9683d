"""The W&B mirror, as the supervisor sees it: a child that may be late or hang, and is ended in time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from rl_cli.core.own_process import without_secrets
from rl_cli.core.processes import kill_tree, python_module
from rl_cli.runs import children
from rl_cli.runs.run_dir import RunDir

FINISH_SECONDS = 12.0
"""How long it may take to hand over the rest once the run is over."""


class MirrorChild:
    def __init__(self, run: RunDir, mode: str) -> None:
        self.run, self.mode = run, mode
        self.child: children.Child | None = None

    def start(self) -> None:
        if self.mode == "off" or os.environ.get("WANDB_MODE") == "disabled":
            return
        argv = python_module("rl_cli.runs.wandb_mirror", str(self.run.path))
        # With its debug switches on, wandb writes the API key into its log files.
        quiet = {"WANDB_DEBUG": None, "WANDB_CORE_DEBUG": None, **without_secrets(os.environ, "WANDB_")}
        try:
            self.child = children.start(argv, self.run.log_path("wandb"), cwd=self.run.path, env=quiet)
        except OSError as error:
            message = f"W&B gets nothing of this run: its process could not be started ({error})"
            self.run.append_event("alert", rule="wandb", message=message, action="none is needed", figures={})

    def adopt(self, processes: Mapping[str, Any]) -> None:
        """Goes on with the processes that the last supervisor had started, as far as they still run.

        Args:
            processes: Those of state.json, by name.
        """

    def finish(self) -> None:
        """Waits a bounded time for it to end by itself, then ends it with its helper processes."""
        if self.child is None:
            return
        if self.child.wait(FINISH_SECONDS) is None:
            message = f"W&B did not take the rest within {FINISH_SECONDS:.0f} s; all of it is kept here"
            action = f"wandb sync {self.run.path / 'wandb'}"
            self.run.append_event("alert", rule="wandb", message=message, action=action, figures={})
        kill_tree(self.child.identity, grace_seconds=1)
