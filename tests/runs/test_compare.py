from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.core.files import write_json
from rl_cli.runs.compare import compare
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from tests.runs.kit import replay_config

EVAL = {"n": 400, "untrained": None, "initial": 0.29, "best": 0.83, "final": 0.8525}


def ended(home: Path, backend: str = "trl", **sections: object) -> RunDir:
    """A finished run as one finds it on the disk."""
    chosen = {"name": backend, "file": "demo" if backend == "replay" else None}
    run = create_run(replay_config(backend=chosen, **sections), home)
    write_json(run.path / "state.json", {**run.state(), "state": "finished", "eval": EVAL})
    return run


def test_accuracies_come_with_n_standard_errors_and_seeds(home: Path) -> None:
    compared = compare([ended(home), ended(home, seed=5)])
    assert compared["n"] == [400, 400]
    assert compared["seeds"] == [0, 5]
    assert compared["config"] == {"seed": [0, 5]}
    assert compared["standard_errors"]["final"] == pytest.approx([0.01773, 0.01773], abs=1e-5)
    assert compared["standard_errors"]["gain"] == pytest.approx([0.028794, 0.028794], abs=1e-5)
    assert "untrained" not in compared["standard_errors"]
    [note] = compared["notes"]
    assert "The seeds differ (0, 5)" in note


def test_a_replay_is_called_not_comparable(home: Path) -> None:
    real, played = ended(home), ended(home, "replay")
    compared = compare([real, played])
    assert compared["notes"][0].startswith(f"Played from a file, nothing was trained: {played.id}.")
    assert compared["standard_errors"]["final"][1] is None
    assert "All have the same seed" in compared["notes"][1]
    assert len(compare([played, played])["notes"]) == 1


def test_different_environments_are_not_comparable(home: Path) -> None:
    compared = compare([ended(home), ended(home, environment={"name": "tool-math"})])
    assert compared["notes"][0].startswith("The environments differ")
