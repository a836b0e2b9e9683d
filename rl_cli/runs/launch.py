"""Starting a run so that it outlives us, and stopping one, whatever state it is in."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.core.errors import WorkFailed
from rl_cli.core.files import explain_os_error
from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module
from rl_cli.runs import children
from rl_cli.runs.backends import prepare
from rl_cli.runs.logs import last_lines, telling_line
from rl_cli.runs.settle import settle, write_end
from rl_cli.runs.state_file import State, StateWriter, is_over
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.times import now_text

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

LOOK_EVERY_SECONDS = 0.03
TERMINATE_SECONDS = 5.0


def start_run(config: RunConfig, home: str | Path, timeout: float = 15) -> RunDir:
    """Creates a run and starts its supervisor, which outlives this process.

    Args:
        config: The config, valid.
        home: RL_CLI_HOME.
        timeout: Seconds that the supervisor may take to own the run.

    Returns:
        The run, in state `starting` or later.

    Raises:
        BadUsage: The backend cannot run here (a missing extra, a replay file with mistakes), or the home
            folder cannot be written.
        WorkFailed: The supervisor did not come up; the run is kept, as failed.
    """
    run = create_run(prepare(config), home)
    argv = python_module("rl_cli.runs.supervisor", str(run.path))
    environment = {"RL_CLI_HOME": str(Path(home).absolute())}
    try:
        child = children.start(argv, run.log_path("supervisor"), cwd=run.path, env=environment, inside=False)
    except OSError as error:
        _give_up(run, f"the supervisor could not be started: {error}")
        raise explain_os_error(error, run.path) from error
    threading.Thread(target=child.process.wait, daemon=True).start()  # else it stays as a zombie
    deadline = time.monotonic() + timeout
    while run.state()["state"] == "created":
        if not child.identity.alive() or time.monotonic() > deadline:
            kill_tree(child.identity, grace_seconds=1)
            if run.state()["state"] != "created":
                break
            line = telling_line(last_lines(run.log_path("supervisor"))) or f"nothing for {timeout:g} s"
            _give_up(run, f"the supervisor did not start: {line}")
            raise WorkFailed(
                f"run {run.id}: the supervisor did not start: {line}", f"see {run.log_path('supervisor')}"
            )
        time.sleep(LOOK_EVERY_SECONDS)
    return run


def _give_up(run: RunDir, reason: str) -> None:
    with run.locked(timeout=2) as writer:
        if not is_over(writer.state):
            writer.move("failed", reason, ended=now_text())


def stop_run(run: RunDir, by: str, reason: str, wait: bool | float = True, now: bool = False) -> State:
    """Asks a run to stop, and waits until it has.

    A run without a supervisor is stopped from here: asked, given its grace, then ended.

    Args:
        run: The run; one that is over stays as it is.
        by: Who stops it: "user", "assistant", ...
        reason: One line.
        wait: True: as long as stopping may take by its config; False: not at all; or seconds at most.
        now: End it at once, without leaving it time to save.

    Returns:
        The state, which is not over yet if `wait` was too short.
    """
    state = settle(run)
    if is_over(state):
        return state
    run.request_stop(by, reason, now=now)
    grace = 0.0 if now else run.config().health.stop_grace_seconds
    longest = grace + 3 * TERMINATE_SECONDS + 10
    deadline = time.monotonic() + (longest if wait is True else float(wait))
    while not is_over(state := settle(run)):
        if state["state"] in ("created", "lost"):
            state = _stop_unsupervised(run, by, reason, min(grace, max(0.0, deadline - time.monotonic())))
            if is_over(state):
                break
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_SECONDS)
    return state


def _stop_unsupervised(run: RunDir, by: str, reason: str, grace: float) -> State:
    """For a run that nobody supervises; leaves one alone whose supervisor is just coming up."""
    try:
        with run.locked() as writer:
            if writer.state["state"] == "created":
                writer.move("stopped", f"{by}: {reason}", ended=now_text())
            elif run.state()["state"] == "lost" and not is_over(writer.state):
                _end_trainer(run, writer, f"{by}: {reason}", grace)
            return writer.state
    except TimeoutError:
        return run.state()


def _end_trainer(run: RunDir, writer: StateWriter, reason: str, grace: float) -> None:
    verdict = {"state": "stopped", "reason": reason}
    writer.update(verdict=verdict)
    trainer = ProcessIdentity.from_dict(writer.state["processes"]["trainer"])
    deadline = time.monotonic() + grace
    while trainer.alive() and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_SECONDS)
    kill_tree(trainer, TERMINATE_SECONDS)
    true = run.state()
    write_end(run, writer, {**true, "ended": true.get("ended") or now_text()})
