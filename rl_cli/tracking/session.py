"""A wandb session that records a run, with every bound that keeps it from waiting."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from rl_cli.core.cuts import one_line
from rl_cli.core.own_process import redact_output
from rl_cli.core.redaction import redact
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import NO_EVALUATION, State

INIT_SECONDS = 8.0
FINISH_SECONDS = 9.0
"""Below the time that the supervisor waits for a recorder, so that W&B ends in good order."""


def prepare(run: RunDir) -> None:
    """What a process that runs a session does first."""
    os.nice(10)
    redact_output()
    os.environ.setdefault("WANDB_CACHE_DIR", str(run.path / "wandb" / "cache"))


def open_session(
    run: RunDir, mode: Literal["online", "offline"], folder: Path, on_stop: Callable[[], None] | None = None
) -> Any:
    """Starts a W&B run of the same id below `folder`/wandb; raises whatever wandb raises.

    Every attempt and every upload is a segment of one W&B run: with `resume` the server appends it. Rows are
    never logged with `step=`: W&B drops those that come out of order.

    Args:
        run: The run.
        mode: online, or offline: no network at all.
        folder: Where its files go.
        on_stop: Called (from another thread) when somebody presses stop on the run's page; online only.
    """
    import wandb

    config = redact(run.config_dict())
    settings = wandb.Settings(
        silent=True,
        console="off",
        disable_git=True,  # the address of a repository may hold a password
        init_timeout=INIT_SECONDS,
        finish_timeout=FINISH_SECONDS,
        x_transaction_log_flush_interval=2,
        x_file_stream_transmit_interval=3,
        stop_fn=on_stop,
    )
    session = wandb.init(
        project=config["tracking"]["project"],
        id=run.id,
        name=run.id,
        dir=str(folder),
        config=config,
        mode=mode,
        resume="allow",
        settings=settings,
    )
    for axis in ("sft/step", "global_step"):
        session.define_metric(axis, hidden=True)
    session.define_metric("sft/*", step_metric="sft/step")
    session.define_metric("*", step_metric="global_step")
    return session


def close_session(session: Any, state: State, newest: dict[str, Any]) -> None:
    """Says how the run ended, as far as it has: a session of a run that goes on is only ended.

    Args:
        session: The session.
        state: The run's state.
        newest: The last value of each figure of the whole run, as it is logged. What a session says of them
            takes the place of what W&B had, and this one may have logged older rows only, or none.
    """
    session.summary.update({name: newest[name] for name in newest if not name.startswith("_")})
    if state.get("ended"):
        evaluations = {**NO_EVALUATION, **(state.get("eval") or {})}
        for which, value in evaluations.items():
            if value is not None:
                session.summary[f"eval/{which}"] = value
        session.summary["state"], session.summary["reason"] = state["state"], redact(state.get("reason"))
    session.finish(exit_code=0 if state["state"] in ("running", "finished", "stopped") else 1)


def alert(run: RunDir, message: str, action: str | None = None) -> None:
    wanted = action or "none is needed: the metrics are in the run's own files"
    run.append_event("alert", rule="wandb", message=message, action=wanted, figures={})


def brief(error: Exception) -> str:
    return f"{type(error).__name__}: {one_line(str(error), 200)}"
