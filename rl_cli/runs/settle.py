"""Writing down what is true of a run whose supervisor can no longer do it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from rl_cli.core.processes import ProcessIdentity, kill_tree
from rl_cli.runs.containment import is_inside
from rl_cli.runs.logs import mask_logs
from rl_cli.runs.progress import Progress, Reader
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import WATCHED, State, StateWriter, attempt_seconds, is_over, read_state
from rl_cli.runs.strays import with_survivors
from rl_cli.runs.times import is_ahead, now_text, since

NEVER_STARTED_SECONDS = 60
"""A run that still is `created` after this long, with nobody holding its lock, was never started."""
ORPHANED_SECONDS = 5
"""The same, if whoever created it is gone and no supervisor of it is on its way."""


def settle(run: RunDir) -> State:
    """The run's true state, written down if state.json says otherwise and nobody holds the lock.

    A run whose directory cannot be written is judged all the same. What a run that is over has left running
    is ended.
    """
    written = read_state(run.path)
    if is_over(written):
        return written
    true = _judged(run, written)
    if true is written or (written["state"] == "lost" and not is_over(true)):
        return true
    with suppress(OSError), run.locked() as writer:  # else: a supervisor is just ending, or it is read-only
        if not is_over(writer.state):
            true = _judged(run, writer.state)
            if is_over(true):
                write_end(run, writer, true)
            else:
                writer.move(**true)
        return writer.state
    return true


def write_end(
    run: RunDir, writer: StateWriter, true: State, survivors: Iterable[ProcessIdentity] = ()
) -> None:
    """Writes how a run without a supervisor ended, with all that its trainer had to say, and the report.

    Args:
        run: The run.
        writer: The right to write its state.
        true: How it ended.
        survivors: Processes of it that could not be ended.
    """
    known = {one.pid: one for one in [*survivors, *end_leftovers(true)]}
    true = {**true, "reason": with_survivors(true["reason"], known.values())}
    figures: State = {}
    heard: str | None = None
    with suppress(OSError):  # nothing may come before the end is written
        progress = _read_again(run, true)
        figures, heard = progress.figures(), progress.heard
    writer.move(**{**true, **figures})
    _close_spending(run, writer.state, heard)
    with suppress(OSError):
        _sweep(run.path)
        mask_logs(run.path / "logs")
    _report(run)


def _report(run: RunDir) -> None:
    from rl_cli.runs.reports.report import write_report

    with suppress(Exception):  # the run's end does not depend on it, and `runs report` tries again
        write_report(run)


def _close_spending(run: RunDir, state: State, heard: str | None) -> None:
    """Counts to the last sign of life: the supervisor's, or what a trainer that outlived it wrote."""
    from rl_cli.spending.gate import RunSpending

    took = 0.0
    if state.get("processes"):
        alone = since(state.get("started"), heard) if heard and not is_ahead(heard) else None
        took = max(attempt_seconds(state) or 0.0, alone or 0.0)
    RunSpending(run.home, run.id, state.get("spending")).close(took, lost=state["state"] == "lost")


def _sweep(folder: Path) -> None:
    """Removes what a process that was killed inside a write has left: files that nobody else writes."""
    for pattern in (".state.json.*.tmp", ".reserve.*.tmp", "exit/.*.tmp", "ready/.*.tmp"):
        for path in folder.glob(pattern):
            if is_inside(folder, path):
                path.unlink(missing_ok=True)


def end_leftovers(state: State) -> list[ProcessIdentity]:
    """Ends what the run's processes have left running; returns what could not be ended."""
    known = [*state.get("processes", {}).values(), state.get("supervisor")]
    trees = [ProcessIdentity.from_dict(one) for one in known if one]
    return [left for tree in trees for left in kill_tree(tree, grace_seconds=2)]


def _judged(run: RunDir, written: State) -> State:
    if written.get("backend") == WATCHED:
        return written
    if written["state"] == "created" and _never_started(run, written):
        reason = "it was never started: whoever created it ended before that"
        return {**written, "state": "failed", "reason": reason, "ended": now_text()}
    true = run.state()
    return written if true["state"] == written["state"] and true["reason"] == written["reason"] else true


def _never_started(run: RunDir, written: State) -> bool:
    waited = since(written.get("resumed") or written["created"]) or 0.0
    if waited > NEVER_STARTED_SECONDS:
        return not _supervisor_is_coming(run)
    creator = written.get("creator")
    if waited < ORPHANED_SECONDS or not creator or ProcessIdentity.from_dict(creator).alive() is not False:
        return False
    return not _supervisor_is_coming(run)


def _supervisor_is_coming(run: RunDir) -> bool:
    """Whether a process of this machine was started to supervise the run: it may not have the lock yet."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            if "rl_cli.runs.supervision.supervisor" in words and str(run.path) in words:
                return True
    return False


def _read_again(run: RunDir, state: State) -> Progress:
    """With what the trainer wrote after the supervisor had gone."""
    progress = Progress(state.get("total_steps"))
    for rows, events in Reader(run).batches():
        progress.feed(rows, events)
    return progress
