from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.runs.reports.paired import answers, compare_answers, mcnemar, paired_interval
from rl_cli.runs.run_dir import RunDir

CELLS = st.tuples(*[st.integers(0, 60)] * 4).filter(any)


@pytest.mark.parametrize(("gained", "lost"), list(itertools.product(range(7), range(7))))
def test_p_is_that_of_all_ways_a_fair_coin_can_fall(gained: int, lost: int) -> None:
    thrown = gained + lost
    ways = [
        abs(2 * sum(heads) - thrown) >= abs(gained - lost)
        for heads in itertools.product((0, 1), repeat=thrown)
    ]
    assert mcnemar(gained, lost) == pytest.approx(sum(ways) / len(ways))


@given(CELLS)
def test_the_two_measurements_may_change_places(cells: tuple[int, int, int, int]) -> None:
    both, gained, lost, neither = cells
    assert mcnemar(gained, lost) == mcnemar(lost, gained)
    assert 0 < mcnemar(gained, lost) <= 1
    low, high = paired_interval(both, gained, lost, neither)
    assert -1 <= low <= (gained - lost) / sum(cells) <= high <= 1
    assert paired_interval(both, lost, gained, neither) == pytest.approx((-high, -low))


def test_published_interval_and_large_counts() -> None:
    # Newcombe (1998), Statistics in Medicine 17:2635, table II: 36, 12, 2, 0
    assert paired_interval(36, 12, 2, 0) == pytest.approx((0.0569, 0.3404), abs=1e-4)
    assert mcnemar(20_000, 100) == 0.0
    assert mcnemar(50_000, 50_000) == 1.0


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng, hits = random.Random(0), 0
    for _ in range(400):
        drawn = rng.choices(range(4), (0.3, 0.15, 0.05, 0.5), k=100)
        low, high = paired_interval(*(drawn.count(cell) for cell in range(4)))
        hits += low <= 0.10 <= high
    assert 0.92 <= hits / 400 <= 0.98


def test_only_the_same_problems_are_compared(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    (tmp_path / "evaluations").mkdir()
    rows = [{"task_id": str(i), "correct": i % 4 > 0} for i in range(40)] + [
        {"task_id": "x", "correct": None}
    ]
    for which, kept in (("initial", rows[:40]), ("final", rows)):
        text = "".join(json.dumps(row) + "\n" for row in kept)
        (tmp_path / "evaluations" / f"{which}.jsonl").write_text(text)
    initial, final = answers(run, "initial"), answers(run, "final")
    assert compare_answers(initial, final) == "the problems differ: 40 and 41, of which 40 are the same"
    assert compare_answers(initial, answers(run, "best")) == "the single answers were not kept"
    assert compare_answers({"x": None}, {"x": True}) == "no problem was judged both times"
    same = compare_answers(final, final)
    assert not isinstance(same, str)
    assert (same.n, same.gained, same.lost, same.p, same.difference) == (40, 0, 0, 1.0, 0.0)
    better = compare_answers(initial, dict.fromkeys(initial, True))
    assert not isinstance(better, str)
    assert math.isclose(better.p, 2 * 0.5**10)
    assert "Of 40 problems 10 are newly right and 0 newly wrong: difference +0.250" in better.sentence()
