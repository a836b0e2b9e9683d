"""Runs to test with: real ones, played by the replay backend."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from rl_cli.config.tree import RunConfig
from rl_cli.core.processes import ProcessIdentity, kill_tree
from rl_cli.runs.launch import start_run
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import State, is_over
from rl_cli.runs.store import RunDir, runs_folder

STEP: dict[str, Any] = {"loss": 0.1, "grad_norm": 0.5, "reward/mean": 0.3, "groups/with_signal": 0.5}


def steps(count: int, every: float = 0.02, step_from: int = 1, **values: Any) -> dict[str, Any]:
    """An entry of a replay file: `count` steps."""
    spec = {"count": count, "every": every, "step_from": step_from, "values": {**STEP, **values}}
    return {"repeat": spec}


def replay_config(
    file: str | Path = "demo", health: dict[str, Any] | None = None, **sections: Any
) -> RunConfig:
    given: dict[str, Any] = {
        "environment": {"name": "gsm8k-mini"},
        "backend": {"name": "replay", "file": str(file)},
        "tracking": {"wandb": "off"},
        "health": {"stop_grace_seconds": 20, **(health or {})},
    }
    return RunConfig.model_validate({**given, **sections})


def write_play(folder: Path, play: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"play-{time.monotonic_ns()}.yaml"
    path.write_text(yaml.safe_dump(play, sort_keys=False))
    return path


def start(home: Path, play: Any, health: dict[str, Any] | None = None, **sections: Any) -> RunDir:
    return start_run(replay_config(write_play(home / "plays", play), health, **sections), home)


def until(condition: Callable[[], Any], seconds: float = 90) -> Any:
    """Waits for a true value and returns it."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value


def until_over(run: RunDir, seconds: float = 90) -> State:
    until(lambda: is_over(settle(run)), seconds)
    return run.state()


def until_state(run: RunDir, state: str) -> State:
    until(lambda: run.state()["state"] == state)
    return run.state()


def until_step(run: RunDir, step: int) -> None:
    until(lambda: run.last_metrics().get("step", 0) >= step)


def identity(run: RunDir, process: str) -> ProcessIdentity:
    state = run.state()
    return ProcessIdentity.from_dict(
        state["supervisor"] if process == "supervisor" else state["processes"][process]
    )


def end_all(home: Path) -> None:
    """Leaves no process of any run behind."""
    folder = runs_folder(home)
    for path in folder.iterdir() if folder.is_dir() else ():
        state = RunDir(path).state()
        for known in (state.get("supervisor"), *state.get("processes", {}).values()):
            if known:
                kill_tree(ProcessIdentity.from_dict(known), grace_seconds=1)
