"""Where a run's directory is, so that a copy of it can be told from itself."""

from __future__ import annotations

from pathlib import Path

from rl_cli.runs.state_file import State
from rl_cli.runs.times import now_text


def place_of(folder: Path) -> State:
    """What state.json keeps of it: path, device, inode."""
    stat = folder.stat()
    return {"path": str(folder), "device": stat.st_dev, "inode": stat.st_ino}


def is_copy(state: State, folder: Path) -> bool:
    """Whether `folder` is a copy of the directory whose processes state.json names.

    A directory that was moved or is reached by another path is itself.
    """
    place = state.get("place")
    if not place or place["path"] == str(folder):
        return False
    try:
        here = place_of(folder)
    except OSError:
        return False
    return (here["device"], here["inode"]) != (place["device"], place["inode"])


def disowned(state: State) -> State:
    """The state of a copy of a run that went on elsewhere: nothing runs here, and nothing is to be ended."""
    reason = f"this is a copy of {state['place']['path']}, made while that run went on; nothing runs here"
    nobody: State = {"supervisor": None, "processes": {}, "spending": None, "place": None}
    ended = state.get("heartbeat") or now_text()
    return {**state, **nobody, "state": "lost", "reason": reason, "ended": ended}
