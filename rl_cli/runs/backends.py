"""The trainer backends: which worker module does the training."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rl_cli.core.errors import BadUsage

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.runs.run_dir import RunDir

WORKERS: dict[str, str] = {
    "trl": "rl_cli.training.trl_worker",
    "replay": "rl_cli.training.replay_worker",
}
"""Backend -> its worker, started as `python -P -m MODULE RUN_DIR` in the run's directory.

A worker appends events, metrics and samples, calls `mark_ready("trainer")` when all is loaded, looks at
`stop_requested()` between steps, and ends with `write_exit("trainer", ...)` (see `rl_cli.runs.run_dir`).
Its module also has `prepare(config) -> config`, which is called before a run is made, and may have
`files_of(config)`: what the run is to keep of files that may change later, and `helpers(run)`: names of
processes that the trainer needs, started before it as `python -P -m MODULE RUN_DIR --process NAME`. One that
ends with another exit code than 0 while the trainer runs ends the run as failed.
"""


def files_of(config: RunConfig) -> dict[str, str]:
    """What the backend keeps in the run's directory from the start: file name -> text.

    Raises:
        RlCliError: As `prepare` does.
    """
    files = getattr(import_module(WORKERS[config.backend.name]), "files_of", None)
    return files(config) if files else {}


def helpers_of(run: RunDir, backend: str) -> list[str]:
    """The names of the processes that a run's trainer needs beside it."""
    helpers = getattr(import_module(WORKERS[backend]), "helpers", None)
    return helpers(run) if helpers else []


def prepare(config: RunConfig) -> RunConfig:
    """Asks the config's backend whether it can run here.

    Returns:
        The config as it is to be kept with the run.

    Raises:
        RlCliError: It cannot: a missing extra, a file with mistakes.
    """
    if config.backend.name not in WORKERS:
        raise BadUsage(
            f"backend {config.backend.name} cannot be started: it follows a run that somebody else started",
            "rl-cli runs watch wandb:ENTITY/PROJECT/RUN",
        )
    prepared: RunConfig = import_module(WORKERS[config.backend.name]).prepare(config)
    return prepared
