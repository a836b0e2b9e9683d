"""Faults of graders that users of such systems reported, by id."""

from __future__ import annotations

import itertools
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import pytest

from environments.catalogue import load_environment
from environments.rewards.numbers import grade_number, read_gold
from environments.rewards.second_opinion import SecondOpinion
from environments.rewards.well_formed import well_formed
from rl_cli.core.extras import missing_modules
from tests.components import leave_out

BAD = ["\\boxed{" + "9" * 3_000_000 + "}", "\\boxed{9^{9^{9^{9}}}}", "(" * 200_000]


def right(gold: object, answer: str) -> bool:
    return grade_number(str(gold), answer).correct


def test_grd_05_separators_in_golds(tmp_path: Path) -> None:
    golds = ["2,400,000", "0.5", "-7"]
    rows = [{"question": f"What is {g}?", "answer": f"It is so.\n#### {g}"} for g in golds]
    for name in ("train.jsonl", "test.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = list(load_environment("gsm8k", {"path": str(tmp_path)}).tasks("test", 0))
    assert [read_gold(task.data["answer"]) for task in tasks] == [2_400_000, Fraction(1, 2), -7]


@pytest.mark.parametrize("answer", ["#### 3/4", "\\boxed{\\frac{3}{4}}", "The answer is 3/4."])
def test_grd_06_fractions(answer: str) -> None:
    assert right("0.75", answer)
    assert not any(right(gold, answer) for gold in (3, 4, 34))


@pytest.mark.parametrize("length", [0, 300, 5000, 200_000])
def test_grd_07_a_mark_far_from_the_end(length: int) -> None:
    answer = "#### 42\n" + ("and so on. " * (length // 11 + 1))[:length]
    start = time.process_time()
    assert right(42, answer)
    assert time.process_time() - start < 1


def test_grd_08_format_is_not_correctness() -> None:
    """The rows and the summary of `rl-cli grade` show both: tests/cli/test_grade.py."""
    answer = "Therefore the total is \\boxed{18}."
    assert right(18, answer)
    assert not well_formed(answer)


def test_grd_09_the_sign_of_the_gold() -> None:
    gold = "It falls.\n#### -12"
    assert right(gold, "The answer is -12.")
    assert right(gold, "The answer is \u221212.")
    assert not right(gold, "The answer is 12.")
    assert right(12, "The answer is +12.")


def test_grd_10_a_part_of_a_number() -> None:
    assert not right(4, "The answer is 140.")
    rng = random.Random(0)
    assert not any(right(g, f"The answer is 9{g}9") for g in (rng.randrange(10**6) for _ in range(200)))


def test_grd_11_the_last_statement_counts() -> None:
    answer = "Maybe answer: 5? No, that double counts.\nAnswer: 10"
    assert grade_number("10", answer).extracted == "10"
    assert right(10, answer)
    assert not right(5, answer)


def test_grd_14_fbox() -> None:
    assert right(42, "\\fbox{42}")
    assert "no answer extracted" in grade_number("42", "\\fbox{}").reason


def test_grd_15_marks_in_marks() -> None:
    marks = ["<answer>{}</answer>", "\\boxed{{{}}}", "**{}**", "${}$"]
    for depth in range(1, len(marks) + 1):
        for nesting in itertools.permutations(marks, depth):
            answer = "42"
            for mark in nesting:
                answer = mark.format(answer)
            assert right(42, answer), answer


def test_grd_16_percent() -> None:
    assert right(28, "The answer is 28%.")
    assert right("0.28", "The answer is 28%.")
    assert not right(28, "The answer is 0.28.")


@pytest.mark.parametrize("box", ["28 \\text{ percent}", "28 apples", "\\$28", "28\\%", "28\\text{ m}^2"])
def test_grd_17_units_in_the_box(box: str) -> None:
    assert right(28, f"\\boxed{{{box}}}")


def test_grd_18_what_is_no_single_number() -> None:
    for gold, box in ((2021, "\\pm 2021"), (12, "12:00"), (3, "1, 2, 3"), (1, "1, 2, 3")):
        grade = grade_number(str(gold), f"\\boxed{{{box}}}")
        assert not grade.correct
        assert grade.extracted is None
        assert "not" in grade.reason or "several" in grade.reason


def test_grd_22_bad_answers_hold_nobody_up() -> None:
    with ThreadPoolExecutor(4) as threads:
        rows = [("18", BAD[n % 3]) for n in range(8)] + [(str(n), f"The answer is {n}.") for n in range(100)]
        assert [grade.correct for grade in threads.map(lambda row: grade_number(*row), rows)][8:] == [
            True
        ] * 100


def test_grd_22_a_second_opinion_that_hangs_is_killed_and_replaced() -> None:
    if missing_modules("math"):
        leave_out("the math extra (pip install 'rl-flywheel[math]')")
    rows = [("18", BAD[n % 3]) for n in range(8)] + [(str(n), f"The answer is ${n}$.") for n in range(100)]
    with SecondOpinion(workers=4, limit_s=5) as opinion, ThreadPoolExecutor(4) as threads:
        start = time.monotonic()
        verdicts = list(threads.map(lambda row: opinion.correct(*row), rows))
        assert verdicts[8:] == [True] * 100
        assert not any(verdicts[:8])
        assert len(opinion.pids()) == 4
        assert time.monotonic() - start < 60


def test_grd_23_thinking_that_began_in_the_prompt() -> None:
    assert right(4, "two and two.\n</think>\nThe answer is 4.")
    assert not right(2, "2\n</think>\nThe answer is 4.")
    assert well_formed("two and two.\n</think>\n#### 4")


def test_grd_24_several_blocks() -> None:
    answer = "<think>a</think><answer>3</answer><think>b</think><answer>9</answer>"
    assert not right(3, answer)
    assert right(9, answer)
    assert not well_formed(answer)
