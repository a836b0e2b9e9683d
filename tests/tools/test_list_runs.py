"""What rl_list_runs says of each run beside its summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.core.files import read_json, write_json
from tests.runs.kit import identity, start, steps, until, until_over
from tests.tools.calls import call, context


def test_of_a_resumed_run_the_time_that_it_ran_is_listed_not_what_lay_between(home: Path) -> None:
    run = start(home, [steps(3)])
    until_over(run)
    until(lambda: not identity(run, "supervisor").alive())  # it writes the state no more
    alone = listed_seconds()
    assert alone > 0
    state = read_json(run.path / "state.json")
    write_json(run.path / "state.json", {**state, "attempt": 2, "seconds_before": 1000.0})
    assert listed_seconds() == pytest.approx(1000.0 + alone)


def listed_seconds() -> float:
    [row] = call("rl_list_runs", {}, context(toolsets=("rl",)))["runs"]
    return float(row["seconds"])
