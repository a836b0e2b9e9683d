"""Starting a run so that it outlives us, and stopping one, whatever state it is in."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.core.errors import BadUsage, RlCliError, WorkFailed
from rl_cli.core.files import explain_os_error
from rl_cli.core.processes import ProcessIdentity, kill_tree, python_module
from rl_cli.core.settings import load_settings
from rl_cli.runs.backends import files_of, prepare
from rl_cli.runs.containment import must_be_its_own
from rl_cli.runs.logs import last_lines, telling_line
from rl_cli.runs.settle import settle, write_end
from rl_cli.runs.state_file import WATCHED, State, StateWriter, is_over, judge
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.strays import stray_processes
from rl_cli.runs.supervision import children
from rl_cli.runs.times import now_text
from rl_cli.spending.gate import RunSpending, reserve_run
from rl_cli.spending.limits import Limits
from rl_cli.spending.rates import rate_here, with_run_budget

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.spending.rates import Rate

LOOK_EVERY_SECONDS = 0.03
TERMINATE_SECONDS = 5.0
UNHEEDED_SECONDS = 6.0
"""A supervisor that has not taken a request up after this long may be suspended or hang."""


def start_run(
    config: RunConfig,
    home: str | Path,
    timeout: float = 15,
    session: str | None = None,
    rate: Rate | None = None,
) -> RunDir:
    """Creates a run and starts its supervisor, which outlives this process.

    Args:
        config: The config, valid.
        home: RL_CLI_HOME.
        timeout: Seconds that the supervisor may take to own the run.
        session: Of the conversation that starts it: its budget counts too.
        rate: What an hour of it takes; None: what it takes on this machine.

    Returns:
        The run, in state `starting` or later.

    Raises:
        BadUsage: The backend cannot run here (a missing extra, a replay file with mistakes), or the home
            folder cannot be written.
        WorkFailed: The supervisor did not come up; the run is kept, as failed.
        Refused: A budget does not allow it.
    """
    settings = load_settings()
    config = with_run_budget(prepare(config), Limits.from_settings(settings))
    rate = rate or rate_here(config, settings)
    reserved = reserve_run(config, home, settings, rate, session)
    try:
        run = create_run(config, home, files_of(config), reserved)
    except Exception:
        RunSpending(home, "", reserved).close(0)
        raise
    start_supervisor(run, timeout)
    return run


def attach_run(run: RunDir, timeout: float = 15) -> RunDir:
    """Gives a lost run whose trainer still runs a new supervisor, which goes on where the last one was.

    Args:
        run: The run; one that somebody supervises stays as it is.
        timeout: Seconds that the supervisor may take to own the run.

    Raises:
        BadUsage: Nothing of it runs any more.
        WorkFailed: The supervisor did not come up; the trainer goes on without one.
    """
    state = settle(run)
    if is_over(state) or state["state"] == "created":
        why = f": {state['reason']}" if state.get("reason") else ""
        raise BadUsage(
            f"nothing of {run.id} runs: it is {state['state']}{why}", f"rl-cli runs resume {run.id}"
        )
    if state["state"] == "lost":
        start_supervisor(run, timeout, attach=True)
    return run


def start_supervisor(run: RunDir, timeout: float = 15, attach: bool = False) -> None:
    """Starts the supervisor of a run, which outlives this process, and waits until it owns the run.

    Args:
        run: A run that is `created`; with `attach` a `lost` one whose trainer still runs.
        timeout: Seconds that it may take.
        attach: Take the trainer over.

    Raises:
        RlCliError: It did not come up: a run that was `created` is kept, as failed. Or something in the run's
            directory leads out of it.
    """
    must_be_its_own(run.path)
    waiting = "lost" if attach else "created"
    argv = python_module(
        "rl_cli.runs.supervision.supervisor", str(run.path), *(["--attach"] if attach else [])
    )
    log = run.log_path("supervisor")
    try:
        child = children.start(argv, log, cwd=run.path, env={"RL_CLI_HOME": str(run.home)}, inside=False)
    except OSError as error:
        _give_up(run, waiting, f"the supervisor could not be started: {error}")
        raise explain_os_error(error, run.path) from error
    reaper = threading.Thread(target=child.process.wait, daemon=True)  # else it stays as a zombie
    reaper.start()
    deadline = time.monotonic() + timeout
    while run.state()["state"] == waiting:
        ended = not child.identity.alive()
        if ended:
            reaper.join(1)
        if (ended and child.code != 0) or time.monotonic() > deadline:  # 0: another one has the run
            kill_tree(child.identity, grace_seconds=1)
            if run.state()["state"] != waiting:
                return
            how = f"it {children.how_it_ended(child.process.returncode or 0)}" if ended else ""
            line = telling_line(last_lines(log))
            line = ": ".join(filter(None, (how or f"nothing for {timeout:g} s", line)))
            _give_up(run, waiting, f"the supervisor did not start: {line}")
            raise WorkFailed(f"run {run.id}: the supervisor did not start: {line}", f"see {log}")
        time.sleep(LOOK_EVERY_SECONDS)


def _give_up(run: RunDir, waiting: str, reason: str) -> None:
    """A run that did not get beyond `created` has failed; one whose trainer runs goes on."""
    if waiting != "created":
        return
    with run.locked(timeout=2) as writer:
        if not is_over(writer.state):
            writer.move("failed", reason, ended=now_text())
            RunSpending(run.home, run.id, writer.state.get("spending")).close(0)


def stop_run(run: RunDir, by: str, reason: str, wait: bool | float = True, now: bool = False) -> State:
    """Asks a run to stop, and waits until it has.

    A run without a supervisor is stopped from here: asked, given its grace, then ended. So is one whose
    state.json cannot be read; its processes are those that run for its directory.

    Args:
        run: The run; one that is over stays as it is.
        by: Who stops it: "user", "assistant", ...
        reason: One line.
        wait: True: as long as stopping may take by its config; False: not at all; or seconds at most.
        now: End it at once, without leaving it time to save.

    Returns:
        The state, which is not over yet if `wait` was too short.

    Raises:
        BadUsage: It is a watched run: none of our processes trains it.
    """
    state = settle(run)
    if state.get("damaged"):
        return _stop_strays(run, by, reason, wait, now)
    if is_over(state):
        return state
    if state.get("backend") == WATCHED:
        hint = f"wandb_stop_run, or rl-cli runs stop {run.id}, asks W&B to stop it"
        raise BadUsage(f"{run.id} is a run of somebody else, which is only followed here", hint)
    try:
        run.request_stop(by, reason, now=now)
    except OSError as error:  # a full disk without a reserve
        _signal_instead(run, state, error)
    grace = 0.0 if now else grace_seconds(run)
    longest = grace + 3 * TERMINATE_SECONDS + 10
    deadline = time.monotonic() + (longest if wait is True else float(wait))
    unheeded = time.monotonic() + UNHEEDED_SECONDS
    while not is_over(state := settle(run)):
        if state["state"] in ("created", "lost"):
            state = _stop_unsupervised(run, by, reason, min(grace, max(0.0, deadline - time.monotonic())))
            if is_over(state):
                break
            if state["state"] == "created" and time.monotonic() > unheeded:
                for supervisor in stray_processes(run):  # it holds the lock, and hangs before it owns the run
                    kill_tree(supervisor, grace_seconds=0)
        elif time.monotonic() > unheeded and (is_suspended(state) or (now and not state.get("verdict"))):
            if not now:
                break
            _end_supervisor(state)
        if time.monotonic() > deadline:
            break
        time.sleep(LOOK_EVERY_SECONDS)
    return state


def _stop_strays(run: RunDir, by: str, reason: str, wait: bool | float, now: bool) -> State:
    if not (strays := stray_processes(run)):
        return run.state()
    with suppress(OSError):  # a full disk: they are ended all the same
        run.request_stop(by, reason, now=now)
    grace = 0.0 if now else grace_seconds(run)
    deadline = time.monotonic() + (grace if wait is True else min(grace, float(wait)))
    while any(one.alive() for one in strays) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_SECONDS)
    if wait is not False or now:
        for one in strays:
            kill_tree(one, TERMINATE_SECONDS)
    return run.state()


def is_suspended(state: State) -> bool:
    """Whether the supervisor is there but was halted by a signal (SIGSTOP), so that it does nothing."""
    import psutil

    if not state.get("supervisor"):
        return False
    supervisor = ProcessIdentity.from_dict(state["supervisor"])
    with suppress(psutil.Error):
        return bool(supervisor.alive()) and psutil.Process(supervisor.pid).status() == psutil.STATUS_STOPPED
    return False


def _signal_instead(run: RunDir, state: State, error: OSError) -> None:
    """To the supervisor SIGTERM means stop. A run that has none is stopped from here."""
    if state["state"] in ("created", "lost"):
        return
    supervisor = ProcessIdentity.from_dict(state["supervisor"])
    if not supervisor.alive():
        raise explain_os_error(error, run.path / "stop.json") from error
    with suppress(ProcessLookupError):
        os.kill(supervisor.pid, signal.SIGTERM)


def _end_supervisor(state: State) -> None:
    """Ends one that does not answer, by itself: its trainer is ended by whoever has the lock then."""
    supervisor = ProcessIdentity.from_dict(state["supervisor"])
    if supervisor.alive():
        with suppress(ProcessLookupError):
            os.kill(supervisor.pid, signal.SIGKILL)


def grace_seconds(run: RunDir) -> float:
    """How long its trainer may take to save and be evaluated once it is asked to stop."""
    from rl_cli.config.tree import HealthSection

    try:
        return run.config().health.stop_grace_seconds
    except (RlCliError, OSError, ValueError):  # a run.yaml that cannot be used must not keep it running
        return HealthSection().stop_grace_seconds


def _stop_unsupervised(run: RunDir, by: str, reason: str, grace: float) -> State:
    """For a run that nobody supervises; leaves one alone whose supervisor is just coming up."""
    try:
        with run.locked() as writer:
            if writer.state["state"] == "created":
                writer.move("stopped", f"{by}: {reason}", ended=now_text())
                RunSpending(run.home, run.id, writer.state.get("spending")).close(0)
            elif run.state()["state"] == "lost" and not is_over(writer.state):
                _end_trainer(run, writer, f"{by}: {reason}", grace)
            return writer.state
    except TimeoutError:
        return run.state()


def _end_trainer(run: RunDir, writer: StateWriter, reason: str, grace: float) -> None:
    verdict = {"state": "stopped", "reason": reason}
    with suppress(OSError):  # a full disk: it is known here, and written with the end
        writer.update(verdict=verdict)
    trainer = ProcessIdentity.from_dict(writer.state["processes"]["trainer"])
    deadline = time.monotonic() + grace
    while trainer.alive() and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_SECONDS)
    survivors = kill_tree(trainer, TERMINATE_SECONDS)
    if trainer.alive():  # the run is not over then, and says that it still runs
        return
    true = judge(writer.state, run.exit("trainer"))
    write_end(run, writer, {**true, "ended": true.get("ended") or now_text()}, survivors)
