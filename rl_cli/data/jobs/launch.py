"""Starting work on a batch so that it outlives whoever asked for it, and stopping it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.files import explain_os_error, write_json
from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module
from rl_cli.core.settings import home
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.jobs.job import Job, failure_of, only_starter, worker_of
from rl_cli.runs.supervision import children

OWN_SECONDS = 60.0
"""That a process may take until it says that the work is its own."""
BEGIN_SECONDS = 20.0
"""How long its beginning is waited for, so that what is wrong with it can be told at once."""
LOOK_EVERY_SECONDS = 0.05


def start_job(job: Job, order: dict[str, Any]) -> dict[str, Any]:
    """Starts the work in a process of its own.

    Args:
        job: Which work, on which batch.
        order: What is to be done, for `worker`.

    Returns:
        Its state: `running` or over; `starting` where that takes longer than BEGIN_SECONDS.

    Raises:
        BadUsage: Somebody works on the batch already, or the order cannot be carried out.
        RlCliError: As the work says, where it failed in its beginning.
    """
    try:
        with only_starter(job.folder):
            write_json(job.order, order)
            _start_process(job)
    except OSError as error:
        raise explain_os_error(error, job.folder.path) from error
    until = time.monotonic() + BEGIN_SECONDS
    while (state := job.state()).get("state") == "starting" and time.monotonic() < until:
        time.sleep(LOOK_EVERY_SECONDS)
    if state.get("state") == "failed":
        raise failure_of(state)
    return state


async def begin_job(job: Job, order: dict[str, Any]) -> dict[str, Any]:
    """As `start_job`; where it is cancelled meanwhile, what was started is stopped."""
    starting = asyncio.ensure_future(asyncio.to_thread(start_job, job, order))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        await starting
        await asyncio.to_thread(stop_work, job.folder, now=True)
        raise


def _start_process(job: Job) -> None:
    """Returns once the process says that the work is its own, and has read the order."""
    argv = python_module("rl_cli.data.jobs.worker", str(job.folder.path), job.kind)
    child = children.start(argv, job.log, cwd=Path.cwd(), env={"RL_CLI_HOME": str(home())}, inside=False)
    reaper = threading.Thread(target=child.process.wait, daemon=True)  # else it stays as a zombie
    reaper.start()
    until = time.monotonic() + OWN_SECONDS
    while job.state().get("process", {}).get("pid") != child.identity.pid:
        if not child.identity.alive() or time.monotonic() > until:
            kill_tree(child.identity, grace_seconds=1)
            raise WorkFailed(f"the work on batch {job.folder.name} did not start", f"see {job.log}")
        time.sleep(LOOK_EVERY_SECONDS)


def stop_work(folder: BatchFolder, now: bool = False, seconds: float = 30.0) -> bool:
    """Stops what is done with a batch, as Ctrl-C does, and a second one where it is to stop now.

    Args:
        folder: The batch's.
        now: What is in flight is ended too.
        seconds: How long the end is waited for.

    Returns:
        Whether nobody works on the batch any more.

    Raises:
        BadUsage: The work is done by another computer.
    """
    process = worker_of(folder)
    if process is None:
        return True
    if process.alive() is None:
        raise BadUsage(f"batch {folder.name} is made on {process.host}", "stop it there")
    _press(process, now)
    until = time.monotonic() + seconds
    while process.alive() and time.monotonic() < until:
        time.sleep(LOOK_EVERY_SECONDS)
    return not process.alive()


def _press(process: ProcessIdentity, now: bool) -> None:
    """Two signals of one kind can become one, so that the second is of the other kind."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGINT)
        if now:
            os.kill(process.pid, signal.SIGTERM)
