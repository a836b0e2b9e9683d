"""The processes of a run that state.json cannot name: found by their command lines, or left at its end."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from rl_cli.core.processes import TREE, ProcessIdentity
from rl_cli.runs.run_dir import RunDir

OURS = "rl_cli."
"""How the names of our modules begin."""
NOT_ENDED = "still runs, and could not be ended"
"""Found in the reason of a run that has left something behind."""


def stray_processes(run: RunDir) -> list[ProcessIdentity]:
    """What runs one of our modules for the run's directory on this machine, each with its mark."""
    here = os.path.realpath(run.path)
    return [process for folder, process, _ in ours_by_folder() if folder == here]


def with_survivors(reason: str, survivors: Iterable[ProcessIdentity]) -> str:
    """The reason of a run's end, with the processes of the run that could not be ended."""
    import psutil

    named = []
    for one in survivors:
        with suppress(psutil.Error):
            named.append(f"pid {one.pid} ({psutil.Process(one.pid).name()})")
    return f"{reason}; {NOT_ENDED}: {', '.join(named)}" if named else reason


def ours_by_folder() -> Iterator[tuple[str, ProcessIdentity, list[str]]]:
    """Every process of this machine that runs one of our modules for a folder: (folder, process, words)."""
    import psutil

    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            words = process.cmdline()
            folder = _folder_of(words)
            if folder is None or process.pid == os.getpid():
                continue
            marks = process.environ().get(TREE, "").split()
            identity = ProcessIdentity.of(process.pid)
            identity = replace(identity, mark=marks[-1]) if marks else identity
            if identity.alive():
                yield folder, identity, words


def _folder_of(words: list[str]) -> str | None:
    module = words.index("-m") + 1 if "-m" in words else len(words)
    if module + 1 >= len(words) or not words[module].startswith(OURS):
        return None
    return os.path.realpath(words[module + 1])
