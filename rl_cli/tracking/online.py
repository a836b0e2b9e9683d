"""Logs a run online: `python -P -m rl_cli.tracking.online RUN_DIR`, for tracking.wandb=online.

A process of its own: whatever W&B does (hang, refuse) happens here and neither slows nor ends the run. It
hears when somebody presses stop on the run's page. Where W&B cannot be reached at the start the run is
recorded offline; what does not arrive is uploaded at the end (see `uploader`).
"""

from __future__ import annotations

import sys
from pathlib import Path

from rl_cli.runs.run_dir import RunDir
from rl_cli.tracking.recorder import follow
from rl_cli.tracking.session import alert, brief, open_session, prepare


def log_online(run: RunDir) -> int:
    """Logs all of a run while it goes on; returns the exit code."""

    def stop() -> None:
        run.request_stop("W&B", "stopped there")

    try:
        session = open_session(run, "online", run.path, stop)
    except Exception as error:  # whatever wandb raises: the run goes on without it
        alert(run, f"W&B cannot be reached ({brief(error)}): the run is kept offline")
        _end_service()
        return _log_offline(run)
    run.append_event("wandb", mode="online", url=session.url, dir=str(Path(session.dir).parent))
    follow(run, session)
    return 0


def _log_offline(run: RunDir) -> int:
    from rl_cli.tracking.recorder import record

    return record(run, alone=False)


def _end_service() -> None:
    """wandb's helper process holds on to the id of a run that could not be opened."""
    import wandb

    wandb.teardown()


def main(folder: str) -> int:
    run = RunDir(folder)
    prepare(run)
    return log_online(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
