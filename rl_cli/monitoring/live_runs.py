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
        """Runs that were seen to be over for the first time since this was last emptied."""

    def find(self) -> dict[str, State]:
        """Run id -> state: of those that run, or whose trainer does."""
        return {name: state for name in self.names() if (state := self.look(name))}

    def names(self) -> list[str]:
        return run_names(self._folder)

    def look(self, name: str) -> State | None:
        """The state of one run if it is live; None if it is not, or is none."""
        changed = _changed(self._folder / name / "state.json")
        if changed is None or self._over.get(name) == changed:
            return None
        state = settle(RunDir(self._folder / name))
        if state["state"] in LIVE or not (is_over(state) or state["state"] == "created"):
            return state
        if is_over(state):
            self._over[name], self.ended[name] = changed, state
        return None


def run_names(folder: Path) -> list[str]:
    """What may be runs: nothing but the folder itself is read."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return sorted(name for name in names if not name.startswith("."))


def is_orphan(state: State) -> bool:
    """Its supervisor is gone, its trainer still runs."""
    return state["state"] == "lost" and not is_over(state) and state.get("backend") != "wandb"


def _changed(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return None
