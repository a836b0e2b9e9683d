"""wandb's own sync command as a child that can be ended. Its exit code and its marker say nothing."""

from __future__ import annotations

import os
from pathlib import Path

from rl_cli.core.processes import python_module
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision import children
from rl_cli.runs.supervision.tracking_mode import environment_for

BOUNDS = {
    "WANDB_X_FILE_STREAM_TRANSMIT_INTERVAL": "5",
    **{
        f"WANDB_X_{part}_{name}": value
        for part in ("FILE_STREAM", "GRAPHQL", "FILE_TRANSFER")
        for name, value in (("TIMEOUT_SECONDS", "15"), ("RETRY_WAIT_MAX_SECONDS", "10"))
    },
}
"""A request that hangs is given up and made again; how often is the business of whoever ends the process."""

FILES = ("config.yaml", "requirements.txt", "wandb-metadata.json", "wandb-summary.json")
"""What a session uploads beside the rows; every upload of it brings them anew."""


def segments(run: RunDir) -> list[Path]:
    """What has been recorded of a run, oldest first."""
    folders = (run.path / "wandb").glob("*run-*-*")
    found = [
        path for path in folders if path.is_dir() and not path.is_symlink() and any(path.glob("*.wandb"))
    ]
    return sorted(found, key=lambda path: path.name.split("run-", 1)[1])


def files_of(folders: list[Path]) -> set[str]:
    """Those of FILES that segments have: some are written only when they are uploaded."""
    return {name for name in FILES for folder in folders if (folder / "files" / name).exists()}


def start_sync(run: RunDir, folders: list[Path], *, live: bool = False, over: bool = True) -> children.Child:
    """Starts to upload segments, whether they are marked as uploaded or not; it ends when we do.

    Args:
        run: The run.
        folders: The segments.
        live: Follow the last one until its recorder ends it.
        over: Whether the run has ended: else W&B must not be told that it has.

    Raises:
        OSError: It cannot be started.
    """
    options = ["--yes", "--no-skip-synced", "--no-skip-online", *(["--live"] if live else [])]
    words = ["beta", "sync", *options, *map(str, folders)]
    argv = python_module("rl_cli.tracking.bound", str(run.path), str(os.getpid()), *words)
    environment = {
        **environment_for(key=True),
        **BOUNDS,
        "WANDB_CACHE_DIR": str(run.path / "wandb" / "cache"),
    }
    if not (live or over):
        environment["WANDB_X_UPDATE_FINISH_STATE"] = "false"
    return children.start(argv, run.log_path("wandb-sync"), cwd=run.path, env=environment)
