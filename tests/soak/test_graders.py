"""The number grader on the whole of GSM8K: its own solutions are right, and nobody else's are."""

from __future__ import annotations

import json
import random
import time

import pytest

from environments.rewards.numbers import grade_number, read_gold
from tests.components import gsm8k

OTHERS = 8
"""Other rows' solutions that each row is graded with."""

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("split", ["train", "test"])
def test_each_row_accepts_its_own_solution_and_no_other_answer(split: str) -> None:
    lines = (gsm8k() / f"{split}.jsonl").read_text("utf-8").splitlines()
    solutions = [json.loads(line)["answer"] for line in lines]
    golds = [read_gold(solution) for solution in solutions]
    assert None not in golds
    start = time.perf_counter()
    assert [s for s in solutions if not grade_number(s, s).correct] == []
    rng = random.Random(split)
    pairs = [
        (solution, solutions[other])
        for place, solution in enumerate(solutions)
        for other in rng.sample(range(len(solutions)), OTHERS)
        if golds[other] != golds[place]
    ]
    assert [pair for pair in pairs if grade_number(*pair).correct] == []
    count = len(solutions) + len(pairs)
    seconds = time.perf_counter() - start
    print(f"GSM8K {split}: {count} gradings, {1e6 * seconds / count:.0f} µs each")


@pytest.mark.parametrize("split", ["train", "test"])
def test_solutions_without_the_mark_are_read_as_well(split: str) -> None:
    """Their last sentence mostly ends in the answer, so few are missed, and those for a reason."""
    lines = (gsm8k() / f"{split}.jsonl").read_text("utf-8").splitlines()
    solutions = [json.loads(line)["answer"] for line in lines]
    found = [grade_number(s, s.rpartition("####")[0]).correct for s in solutions]
    print(f"GSM8K {split}: {found.count(True)} of {len(found)} right without ####")
    assert found.count(True) > 0.95 * len(found)
