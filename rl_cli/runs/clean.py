"""What runs have left behind that nobody needs: finding it, and removing it.

Looks only at runs that are over, each under its lock, and removes only what it knows: processes with a run's
mark, drafts of runs that were never made, files that a kill left half written, checkpoints that are
incomplete or that the config does not ask to keep. A whole run is removed only when it is named. What a link
leads out of a run to is not the run's, and stays.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rl_cli.core.errors import BadUsage, RlCliError
from rl_cli.core.files import read_json
from rl_cli.core.processes import ProcessIdentity, kill_tree, marked_processes
from rl_cli.runs.checkpoints import FOLDER, WRITING
from rl_cli.runs.containment import is_inside, is_linked
from rl_cli.runs.lock_holder import supervisor_is_there, who_holds
from rl_cli.runs.retention import to_remove
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import OVER, WATCHED, is_over, read_state
from rl_cli.runs.store import runs_folder
from rl_cli.runs.strays import ours_by_folder, stray_processes
from rl_cli.runs.times import since

DRAFT, GOING = ".new-", ".old-"
DRAFT_SECONDS = 600
"""A draft of which nobody knows who makes it is left alone for so long; one is made within a second."""
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
_FOLDERS = (".", "exit", "ready", "logs", "evaluations")
"""Where a run's files are replaced by way of temporary ones."""

Kind = Literal["process", "draft", "temporary file", "checkpoint", "run"]


@dataclass(frozen=True)
class Leftover:
    """Something that can be removed."""

    kind: Kind
    run: str | None
    """The id of the run that left it."""
    what: str
    """One line."""
    path: Path | None = None
    process: ProcessIdentity | None = None
    bytes: int = 0

    def to_dict(self) -> dict[str, Any]:
        path = str(self.path) if self.path else None
        pid = self.process.pid if self.process else None
        known = {"kind": self.kind, "run": self.run, "what": self.what, "bytes": self.bytes}
        return {**known, "path": path, "pid": pid}


def find_leftovers(home: Path, runs: Iterable[RunDir], older_than: float = 0) -> Iterator[Leftover]:
    """What the runs have left, and what was left of making and removing runs.

    Args:
        home: RL_CLI_HOME.
        runs: Those to look at; one that is not over, or busy, or a link to a folder is passed over.
        older_than: Only runs that have been over for so many seconds.
    """
    yield from _drafts(runs_folder(home))
    marks: dict[str, str] = {}
    folders: dict[str, str] = {}
    for run in runs:
        state = read_state(run.path)
        if is_linked(run.path) or not _is_idle(run, state) or (since(state.get("ended")) or 0.0) < older_than:
            continue
        marks |= dict.fromkeys(_marks(state), run.id)
        folders[os.path.realpath(run.path)] = run.id
        yield from _files_of(run)
    for folder, identity, _ in ours_by_folder() if folders else ():
        if folder in folders and identity.mark not in marks:  # of an upload: state.json does not name it
            marks[identity.mark] = folders[folder]
    for identity, words in marked_processes(marks) if marks else ():
        what = f"pid {identity.pid}, {' '.join(words)[:200]}"
        yield Leftover("process", marks[identity.mark], what, process=identity)


def whole_run(run: RunDir) -> list[Leftover]:
    """A run with all that is in it, and the processes that it has left.

    Raises:
        BadUsage: It is not over, its processes may run on another machine, or it is a link to a folder.
    """
    if is_linked(run.path):
        raise BadUsage(f"{run.id} cannot be removed: it is a link to {run.path.resolve()}", f"rm {run.path}")
    state = read_state(run.path)
    if not _is_idle(run, state):
        over = is_over(state)
        why = f"it is {state['state']}" + (f": {state['reason']}" if state.get("reason") else "")
        hint = f"if nothing of it runs anywhere, delete {run.path}" if over else f"rl-cli runs stop {run.id}"
        if over and supervisor_is_there(state):
            why += f", and {who_holds(run)}"
            hint = "try again once that is done"
        if state.get("backend") == WATCHED:
            hint = f"end whatever watches it; `rl-cli runs show {run.id}` asks W&B how it is"
        if state.get("damaged") and (running := stray_processes(run)):
            why += f"; of it still run: pid {', '.join(str(one.pid) for one in running)}"
            hint = f"rl-cli runs stop {run.id} ends them"
        raise BadUsage(f"{run.id} cannot be removed: {why}", hint)
    what = f"{state['state']}, step {state.get('step') or 0}, with its checkpoints"
    found = [Leftover("run", run.id, what, run.path, bytes=_size(run.path))]
    for identity, words in marked_processes(_marks(state)):
        text = f"pid {identity.pid}, {' '.join(words)[:200]}"
        found.insert(0, Leftover("process", run.id, text, process=identity))
    return found


def remove(home: Path, leftovers: Iterable[Leftover]) -> list[str]:
    """Removes them; returns one line for each that could not be, or that is not idle any more."""
    problems = []
    for one in leftovers:
        run = RunDir(runs_folder(home) / one.run) if one.run else None
        try:
            if run is None:
                _remove_path(one)
            else:
                with _held(run):
                    if not _is_over_here(read_state(run.path)):
                        raise TimeoutError(f"{run.id} goes on again")
                    if one.path and one.kind != "run" and not is_inside(run.path, one.path):
                        raise OSError("it is not in the run any more")
                    _remove_path(one)
        except (OSError, TimeoutError) as error:
            problems.append(f"{one.kind} {one.path or one.what}: {error}")
    return problems


@contextmanager
def _held(run: RunDir) -> Iterator[None]:
    """Raises OSError: somebody else has the run, and who, as far as that is known."""
    with ExitStack() as stack:
        try:
            stack.enter_context(run.locked())
        except TimeoutError:
            raise OSError(f"{run.id} is not free: {who_holds(run)}") from None
        yield


def _remove_path(one: Leftover) -> None:
    if one.process:
        kill_tree(one.process, grace_seconds=2)
        if one.process.alive():
            raise OSError("it could not be ended")
        return
    assert one.path
    if one.path.is_dir() and not one.path.is_symlink():
        going = one.path if one.kind == "draft" else one.path.with_name(GOING + secrets.token_hex(6))
        one.path.rename(going)  # half a run is no run
        shutil.rmtree(going)
    else:
        one.path.unlink(missing_ok=True)


def _is_over_here(state: dict[str, Any]) -> bool:
    """Over, as far as this machine can know: a run that is lost on another may still go on there."""
    owner = state.get("supervisor")
    elsewhere = owner and ProcessIdentity.from_dict(owner).alive() is None
    return is_over(state) and not state.get("damaged") and not (elsewhere and state["state"] not in OVER)


def _is_idle(run: RunDir, state: dict[str, Any]) -> bool:
    if not _is_over_here(state):
        return False
    with suppress(TimeoutError, OSError), run.locked():  # else it is just writing its report, or read-only
        return True
    return False


def _marks(state: dict[str, Any]) -> list[str]:
    known = [state.get("supervisor"), *state.get("processes", {}).values()]
    return [one["mark"] for one in known if one and one.get("mark")]


def _files_of(run: RunDir) -> Iterator[Leftover]:
    for name in _FOLDERS:
        folder = run.path / name
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if _TEMPORARY.fullmatch(path.name) and path.is_file() and is_inside(run.path, path):
                yield Leftover("temporary file", run.id, "half written", path, bytes=_size(path))
    checkpoints = run.path / FOLDER
    for path in sorted(checkpoints.glob(".*")):
        known = path.name == WRITING or path.name.startswith((".removed-", GOING))
        if known and is_inside(run.path, path):
            yield Leftover("checkpoint", run.id, "half written or half removed", path, bytes=_size(path))
    with suppress(
        RlCliError, OSError, ValueError
    ):  # a run.yaml that cannot be read says nothing of what to keep
        for path in to_remove(run):
            what = f"{path.name}, beyond what the run's config keeps"
            yield Leftover("checkpoint", run.id, what, path, bytes=_size(path))


def _drafts(folder: Path) -> Iterator[Leftover]:
    for path in sorted(folder.glob(".*")):
        going = path.name.startswith(GOING)
        if path.is_symlink() or not path.is_dir():
            continue
        if going or (path.name.startswith(DRAFT) and _is_abandoned(path)):
            what = "a run that was being removed" if going else "a run that was never made"
            yield Leftover("draft", None, what, path, bytes=_size(path))


def _is_abandoned(draft: Path) -> bool:
    with suppress(OSError, ValueError, KeyError, TypeError):
        maker = ProcessIdentity.from_dict(read_json(draft / "state.json")["creator"])
        if (alive := maker.alive()) is not None:
            return not alive
    with suppress(OSError):
        return time.time() - draft.stat().st_mtime > DRAFT_SECONDS
    return False


def _size(path: Path) -> int:
    total = 0
    for one in path.rglob("*") if path.is_dir() else [path]:
        with suppress(OSError):
            total += one.lstat().st_size if not one.is_dir() else 0
    return total
