"""Which runs of a home are live."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import LIVE, State, is_over
from rl_cli.runs.store import runs_folder


class LiveRuns:
    """Finds the live runs of a home; one that is over is read again only if its state.json was changed."""

    def __init__(self, home: Path) -> None:
        self._folder = runs_folder(home)
        self._over: dict[str, int] = {}
        self.ended: dict[str, State] = {}
        """Runs that the last `find` saw to be over for the first time."""

    def find(self, over_too: bool = False) -> dict[str, State]:
        """Run id -> state: of those that run, or whose trainer does; with `over_too` of all that ever did."""
        found: dict[str, State] = {}
        self.ended = {}
        names = [entry.name for entry in self._folder.iterdir()] if self._folder.is_dir() else []
        for name in sorted(names):
            changed = _changed(self._folder / name / "state.json")
            if name.startswith(".") or changed is None or self._over.get(name) == changed:
                continue
            state = settle(RunDir(self._folder / name))
            if state["state"] in LIVE or not (is_over(state) or state["state"] == "created") or over_too:
                found[name] = state
            elif is_over(state):
                self._over[name], self.ended[name] = changed, state
        return found


def is_orphan(state: State) -> bool:
    """Its supervisor is gone, its trainer still runs."""
    return state["state"] == "lost" and not is_over(state) and state.get("backend") != "wandb"


def _changed(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return None
