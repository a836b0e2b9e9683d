"""The trainer backends: which process does the training, and what must be right before it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rl_cli.training.config import RunConfig


def _check_trl(config: RunConfig) -> RunConfig:
    from rl_cli.core.errors import BadUsage
    from rl_cli.training.config_edit import data_problem
    from rl_cli.training.machine import require_extra

    require_extra("train")
    if problem := data_problem(config):
        raise BadUsage(f"the data of {config.environment.name} cannot be had: {problem}")
    return config


def _check_replay(config: RunConfig) -> RunConfig:
    from rl_cli.training.replay_file import find_file, read_play

    path = find_file(config.backend.file or "")
    read_play(path)
    return config.model_copy(update={"backend": config.backend.model_copy(update={"file": str(path)})})


@dataclass(frozen=True)
class Backend:
    """A way to train.

    A worker is started as `python -P -m MODULE RUN_DIR` in the run's directory. It appends events, metrics
    and samples, calls `mark_ready("trainer")` when all is loaded, looks at `stop_requested()` between steps,
    and ends with `write_exit("trainer", ...)` (see `rl_cli.runs.run_dir`).
    """

    worker_module: str
    prepare: Callable[[RunConfig], RunConfig]
    """Refuses (RlCliError) what cannot run here; returns the config as it is to be kept with the run."""


BACKENDS: dict[str, Backend] = {
    "trl": Backend("rl_cli.training.trl_worker", _check_trl),
    "replay": Backend("rl_cli.training.replay_worker", _check_replay),
}
