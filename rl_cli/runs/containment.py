"""Whether what lies in a run's directory is part of it: nothing is written or removed through a link out.

Links that stay inside the directory are fine. Files that are only replaced as a whole (reports, state.json)
need no look: replacing them puts a file in the link's place. Not covered: mounts, hard links, and what is
exchanged while the run goes on.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from rl_cli.core.errors import BadUsage

FOLDERS = ("attempts", "checkpoints", "evaluations", "exit", "logs", "ready", "wandb")
"""Folders that a run's processes write in."""
FILES = (".lock", ".reserve", "events.jsonl", "metrics.jsonl", "samples.jsonl")
"""Files that are written in place."""


def is_inside(run: Path, path: Path) -> bool:
    """Whether the real place of `path` is below that of the run's directory."""
    return os.path.realpath(path).startswith(os.path.realpath(run) + os.sep)


def is_linked(run: Path) -> bool:
    """Whether a run's directory is a link, so that what it holds belongs to another place."""
    return run.is_symlink()


def must_be_its_own(run: Path) -> None:
    """Looks, before a process of a run is started, at every place that it writes to.

    Raises:
        BadUsage: The directory or something in it leads elsewhere, or is not what belongs there.
    """
    if is_linked(run):
        where = os.path.realpath(run)
        raise BadUsage(
            f"{run} is a link to {where}: it can be looked at, and nothing is started in it",
            "for runs on another disk link the folder `runs` as a whole, or set RL_CLI_HOME",
        )
    for path, is_folder in _places(run):
        if not is_inside(run, path):
            problem = f"{path} leads out of the run, to {os.path.realpath(path)}: nothing is written there"
            raise BadUsage(problem, f"remove the link: rm {shlex.quote(str(path))}")
        kind = _kind(path)
        wanted = "a folder" if is_folder else "a file"
        if kind not in (None, wanted):
            problem = f"{path} is {kind}, where {wanted} belongs"
            raise BadUsage(problem, f"move it away: mv {shlex.quote(str(path))} SOMEWHERE")


def _places(run: Path) -> Iterator[tuple[Path, bool]]:
    """(what there is of a run's own, whether it must be a folder)."""
    for name in FILES:
        yield run / name, False
    for name in FOLDERS:
        folder = run / name
        yield folder, True
        if name == "attempts":
            for attempt in _entries(folder):
                yield attempt, attempt.name.isdecimal()
                yield from ((path, path.is_dir()) for path in _below(attempt))
        elif name == "checkpoints":
            yield from ((path, path.is_dir() or path.name.startswith("step-")) for path in _entries(folder))
        elif name != "wandb":  # which links its own logs to a cache
            yield from ((path, path.is_dir()) for path in _entries(folder))


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def _below(folder: Path) -> Iterator[Path]:
    """Everything in a folder and its folders; links are not followed."""
    yield from folder.rglob("*") if folder.is_dir() else ()


def _kind(path: Path) -> str | None:
    """`a file`, `a folder`, what else it is, or None: it is not there."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if stat.S_ISREG(mode):
        return "a file"
    return "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
