"""The processes of a run found by their command lines, where state.json can name none."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rl_cli.core.processes import TREE, ProcessIdentity
from rl_cli.runs.run_dir import RunDir

OURS = "rl_cli."
"""How the names of our modules begin."""


def stray_processes(run: RunDir) -> list[ProcessIdentity]:
    """What runs one of our modules for the run's directory on this machine, each with its mark."""
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and _is_for(process.cmdline(), run.path):
                marks = process.environ().get(TREE, "").split()
                identity = ProcessIdentity.of(process.pid)
                found.append(replace(identity, mark=marks[-1]) if marks else identity)
    return [one for one in found if one.alive()]


def _is_for(words: list[str], folder: Path) -> bool:
    module = words.index("-m") + 1 if "-m" in words else len(words)
    if module + 1 >= len(words) or not words[module].startswith(OURS):
        return False
    return os.path.realpath(words[module + 1]) == os.path.realpath(folder)
