from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from rl_cli.cli.run_compare import compare_runs
from rl_cli.core.errors import BadUsage
from rl_cli.core.files import write_json
from rl_cli.runs.reports.compare import compare, paired_sentences
from rl_cli.runs.reports.compare_page import write_comparison
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


def with_answers(run: RunDir, right: int, task: str = "t{}") -> RunDir:
    rows = [{"task_id": task.format(i), "correct": i < right, "reward": None} for i in range(40)]
    (run.path / "evaluations").mkdir(exist_ok=True)
    (run.path / "evaluations" / "final.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def test_runs_are_compared_problem_by_problem(home: Path) -> None:
    worse, better = with_answers(ended(home), 20), with_answers(ended(home), 30)
    other, silent = with_answers(ended(home), 30, "u{}"), ended(home)
    compared = compare([worse, better, other, silent])
    first, second, third = compared["paired"]
    assert (first["first"], first["second"]) == (worse.id, better.id)
    assert (first["n"], first["gained"], first["lost"], first["difference"]) == (40, 10, 0, 0.25)
    assert math.isclose(first["p"], 2 * 0.5**10)
    assert second["why_not"] == "the problems differ: 40 and 40, of which 0 are the same"
    assert third["why_not"] == "the single answers were not kept"
    [told, *_] = paired_sentences(compared)
    assert told.startswith(f"{better.id} against {worse.id}: Of 40 problems 10 are newly right and 0 newly")
    elsewhere = with_answers(ended(home, environment={"name": "tool-math"}), 30)
    assert compare([worse, elsewhere])["paired"][0]["why_not"] == "the environments differ"


def test_the_page_lays_curves_over_each_other(home: Path, tmp_path: Path) -> None:
    one, other = ended(home, grpo={"learning_rate": 1e-4}), ended(home)
    for run, top in ((one, 0.5), (other, 0.9)):
        for step in range(1, 31):
            run.append_metrics("grpo", step, **{"reward/mean": top * step / 30})
    write_comparison([one, other], tmp_path / "compare.html")
    page = (tmp_path / "compare.html").read_text("utf-8")
    [svg] = [part for part in page.split("<svg")[1:] if "Reward, mean" in part]
    assert svg.count("<polyline") == 2
    assert 'class="curve c1"' in svg
    assert f"{one.id} 0.01667 at step 1, 0.5 at step 30" in svg
    for told in ("grpo.learning_rate", "0.0001", "No paired test", one.id, other.id):
        assert told in page


def test_a_run_that_only_wandb_knows_is_compared_by_its_figures(home: Path) -> None:
    ours, theirs = ended(home), ended(home)
    theirs.append_metrics("grpo", 1, **{"reward/mean": 0.25})
    unknown = {"backend": "wandb", "environment": None, "profile": None, "model": None}
    write_json(theirs.path / "state.json", {**theirs.state(), **unknown})
    compared = compare([ours, theirs])
    assert compared["last"]["reward/mean"] == [None, 0.25]
    assert compared["notes"][0] == f"Followed in W&B, config and environment not known here: {theirs.id}."
    assert not [note for note in compared["notes"] if "environments differ" in note]
    assert "All have the same seed" in compared["notes"][1]


def test_the_same_run_twice_is_refused_and_long_settings_are_cut(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = {"name": "/models/" + "x" * 90 + "/the-end"}
    one, other = ended(home), ended(home, model=model, sft={"steps": 0})
    with pytest.raises(BadUsage, match=f"{one.id} is named twice"):
        compare_runs([one, other, one], as_json=False, plot=False)
    compare_runs([one, other], as_json=False, plot=False)
    [line] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("model.name")]
    assert line.endswith("/the-end")
    assert len(line) < 120
