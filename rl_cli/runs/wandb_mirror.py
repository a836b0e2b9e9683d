"""Copies a run's metrics to W&B while it goes on: `python -P -m rl_cli.runs.wandb_mirror RUN_DIR`.

A process of its own, started by the supervisor: whatever W&B does (hang, refuse, be missing) happens here and
neither slows, fails nor prolongs the run. The run's own files decide; this is a copy that may be late.
Online with WANDB_API_KEY, else offline into RUN_DIR/wandb, which `wandb sync` uploads later.
Rows are never logged with `step=` (W&B drops what comes out of order): GRPO rows carry `global_step`, SFT
rows `sft/step`, and those are declared as the axes.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, Literal

from rl_cli.core.cuts import one_line
from rl_cli.core.own_process import redact_output
from rl_cli.core.redaction import redact
from rl_cli.runs.progress import Progress, Reader, Row, number
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over

Mode = Literal["online", "offline"]
LOOK_EVERY_SECONDS = 1.0
INIT_TIMEOUT = 8.0
FINISH_TIMEOUT = 9.0
"""Below the time that the supervisor waits for this process, so that W&B ends in good order."""


def wanted_mode(tracking: str) -> Mode:
    """The mode, online or offline, by the config's tracking.wandb and the environment."""
    has_key = bool(os.environ.get("WANDB_API_KEY"))
    if tracking == "offline" or (tracking == "auto" and os.environ.get("WANDB_MODE") == "offline"):
        return "offline"
    return "online" if has_key else "offline"


def as_logged(row: Row) -> dict[str, Any]:
    """A row of metrics.jsonl as it goes to W&B: numbers only, with the axis that it belongs to."""
    figures = {name: number(row, name) for name in row if name not in ("time", "phase", "step")}
    figures = {name: value for name, value in figures.items() if value is not None}
    if row.get("phase") == "sft":
        return {"sft/step": row.get("step"), **{f"sft/{name}": value for name, value in figures.items()}}
    return {"global_step": row.get("step"), **figures}


def open_session(run: RunDir, mode: Mode) -> Any:
    """Starts a W&B run of the same id; raises what wandb raises."""
    import wandb

    def stop() -> None:
        run.request_stop("W&B", "stopped there")

    config = redact(run.config_dict())
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,  # the address of a repository may hold a password
        init_timeout=INIT_TIMEOUT,
        finish_timeout=FINISH_TIMEOUT,
        x_transaction_log_flush_interval=2,
        x_file_stream_transmit_interval=3,
        stop_fn=stop,
    )
    session = wandb.init(
        project=config["tracking"]["project"],
        id=run.id,
        name=run.id,
        dir=str(run.path),
        config=config,
        mode=mode,
        resume="allow",
        settings=settings,
    )
    session.define_metric("sft/step", hidden=True)
    session.define_metric("sft/*", step_metric="sft/step")
    session.define_metric("global_step", hidden=True)
    session.define_metric("*", step_metric="global_step")
    return session


def connect(run: RunDir) -> Any | None:
    """The session, online if that is wanted and works, else offline; None without W&B; told as an event."""
    mode = wanted_mode(run.config_dict()["tracking"]["wandb"])
    try:
        try:
            session = open_session(run, mode)
        except ImportError:
            raise
        except Exception as error:
            if mode == "offline":
                raise
            _alert(run, f"W&B cannot be reached ({_brief(error)}): the run is kept offline")
            _end_service()
            mode, session = "offline", open_session(run, "offline")
    except Exception as error:  # whatever wandb raises: the run goes on without it
        _alert(run, f"W&B gets nothing of this run: {_brief(error)}")
        return None
    url = session.url if mode == "online" else None
    run.append_event("wandb", mode=mode, url=url, dir=str(Path(session.dir).parent))
    return session


def _end_service() -> None:
    """wandb's helper process holds on to the id of a run that could not be opened."""
    import wandb

    wandb.teardown()


def copy(run: RunDir, session: Any) -> None:
    """Logs every row until the run is over, then the evaluations and how it ended."""
    reader, progress = Reader(run), Progress()
    while True:
        state = run.state()
        rows, events = reader.read()
        progress.feed(rows, events)
        for row in rows:
            session.log(as_logged(row))
        if is_over(state):
            break
        time.sleep(LOOK_EVERY_SECONDS)
    for which, value in progress.eval.items():
        if value is not None:
            session.summary[f"eval/{which}"] = value
    session.summary["state"], session.summary["reason"] = state["state"], redact(state.get("reason"))
    session.finish(exit_code=0 if state["state"] in ("finished", "stopped") else 1)


def _alert(run: RunDir, message: str) -> None:
    action = "none is needed: the metrics are in the run's own files"
    run.append_event("alert", rule="wandb", message=message, action=action, figures={})


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(str(error), 200)}"


def main(folder: str) -> int:
    os.nice(10)
    redact_output()
    os.environ.setdefault("WANDB_CACHE_DIR", str(Path(folder) / "wandb" / "cache"))
    os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
    run = RunDir(folder)
    session = connect(run)
    if session is not None:
        copy(run, session)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
