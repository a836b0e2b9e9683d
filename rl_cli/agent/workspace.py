"""Where the assistant's own files and commands are: the folder that it was started in, or one of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rl_cli.core.settings import config_folder
from tools.everyday.task_sandbox import TaskSandbox
from tools.sandboxes import kinds
from tools.sandboxes.base import SandboxConfig

NO_TERMINAL = "The assistant has no terminal: {kind} cannot be used here ({why})."
EMPTY = (
    "Files and commands of the assistant are in an empty folder that ends with the conversation, "
    "since {why}: start it in the folder of a project."
)
NO_FILES = "The assistant reads and writes no files, since {why}: start it in the folder of a project."


@dataclass(frozen=True)
class Workspace:
    """What commands and file tools of one conversation can change. Whoever opens it stops the sandbox."""

    sandbox: TaskSandbox
    file_roots: tuple[Path, ...]
    """Where file tools act on this computer; empty: they act in the sandbox."""
    toolsets: tuple[str, ...]
    """What can be offered here."""
    notes: tuple[str, ...]
    """What person and model should know of it, a sentence each: nothing where it is as they expect."""


def open_workspace(folder: Path, home: Path) -> Workspace:
    """The workspace of a conversation that was started in `folder`; nothing is started yet.

    A folder that holds what says who may do what (settings, answers, the ledger) or all of the person's
    files is not handed over: commands then have an empty one.

    Args:
        home: RL_CLI_HOME.
    """
    folder = folder.resolve()
    why = why_not(folder, home)
    config = SandboxConfig(kinds.DEFAULT, workdir=None if why else folder)
    no_terminal = kinds.usable(kinds.DEFAULT)
    terminal = no_terminal is None
    roots = () if why else (folder,)
    notes = [NO_TERMINAL.format(kind=kinds.DEFAULT, why=no_terminal)] if no_terminal else []
    if why:
        notes += [(EMPTY if terminal else NO_FILES).format(why=why)]
    toolsets = (
        *(("files",) if roots or terminal else ()),
        *(("terminal",) if terminal else ()),
        *(("host",) if kinds.usable("local") is None else ()),
    )
    return Workspace(TaskSandbox.of(config), roots, toolsets, tuple(notes))


def why_not(folder: Path, home: Path) -> str | None:
    """Why commands of a model are not given this folder, in a few words; None: they may have it."""
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
