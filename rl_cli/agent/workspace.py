"""Where the assistant's own files and commands are: the folder that it was started in, or one of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl_cli.core.settings import config_folder
from tools.everyday.task_sandbox import TaskSandbox
from tools.sandboxes import kinds
from tools.sandboxes.base import SandboxConfig


@dataclass(frozen=True)
class Workspace:
    """What commands and file tools of one conversation can change. Whoever opens it stops the sandbox."""

    sandbox: TaskSandbox
    file_roots: tuple[Path, ...]
    """Where file tools act on this computer; empty: they act in the sandbox."""
    toolsets: tuple[str, ...]
    """What can be offered here."""
    why_empty: str | None
    """Why it is not the folder that it was started in, in one line; None where it is."""


def open_workspace(folder: Path, home: Path) -> Workspace:
    """The workspace of a conversation that was started in `folder`; nothing is started yet.

    A folder that holds what says who may do what (settings, answers, the ledger) or all of the person's
    files is not handed over: commands then have an empty one.

    Args:
        home: RL_CLI_HOME.
    """
    why = _why_not(folder.resolve(), home)
    config = SandboxConfig(kinds.DEFAULT, workdir=None if why else folder)
    terminal = kinds.usable(kinds.DEFAULT) is None
    roots = () if why else (folder,)
    toolsets = (
        *(("files",) if roots or terminal else ()),
        *(("terminal",) if terminal else ()),
        *(("host",) if kinds.usable("local") is None else ()),
    )
    return Workspace(TaskSandbox.of(config), roots, toolsets, why)


def _why_not(folder: Path, home: Path) -> str | None:
    kept = {
        "all of your files": Path.home(),
        "the settings": config_folder(),
        "the runs and the ledger": home,
    }
    for what, place in kept.items():
        if place.resolve().is_relative_to(folder):
            return f"{folder} holds {what}"
        if place != Path.home() and folder.is_relative_to(place.resolve()):
            return f"{folder} is where {what} are kept"
    return None
