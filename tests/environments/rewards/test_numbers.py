"""The number grader: the shared cases, and properties that hold for every number."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.rewards.numbers import grade_number, read_gold
from tests.components import cases


def rows() -> list[dict[str, object]]:
    return [json.loads(line) for line in (cases() / "grading.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    "row", [r for r in rows() if r["strictness"] == "must"], ids=lambda row: str(row["id"])
)
def test_cases_that_no_reasonable_reader_would_dispute(row: dict[str, object]) -> None:
    grade = grade_number(str(row["model_answer"]), str(row["gold"]))
    assert grade.correct == row["should_pass"], (row["why"], grade)


FORMS = [
    "{}",
    "#### {}",
    "so 3 + 4 = {}\n#### {}",
    "The answer is {}.",
    "**Final answer:** {} apples",
    "The answer is ${}.",
    "最终答案是{}。",
    "\\boxed{{{}}}",
    "I get $\\boxed{{ {} }}$.",
    "<think>7 or 8?</think>The answer is {}!",
    "5 * 5 = 25\nIt costs {} dollars.",
]
numbers = st.integers(-(10**12), 10**12) | st.decimals(-(10**6), 10**6, places=2)


@given(numbers, st.sampled_from(FORMS), st.booleans())
def test_a_number_is_recognised_however_it_is_stated(number: object, form: str, grouped: bool) -> None:
    written = f"{number:,}" if grouped else f"{number}"
    answer = form.replace("{}", written, 1) if "{{" not in form else form.format(written)
    answer = answer.replace("{}", written)
    assert grade_number(answer, str(number)).correct, answer
    assert grade_number(answer, f"some working = 12\n#### {written}").correct


@given(numbers, numbers, st.sampled_from(FORMS))
def test_another_number_is_never_right(number: object, other: object, form: str) -> None:
    answer = form.format(other, other)
    if Fraction(str(number)) != Fraction(str(other)):
        assert not grade_number(answer, str(number)).correct


@given(st.integers(1, 999), st.integers(1, 999))
def test_several_values_are_no_answer(a: int, b: int) -> None:
    for hedge in ("{} or {}", "{}-{}", "{} to {}", "between {} and {}", "{} ± {}", "{}, {}", "{}/{}/2"):
        statement = "The answer is " + hedge.format(a, b)
        assert not grade_number(statement, str(a)).correct, statement
        assert not grade_number(statement, str(b)).correct, statement


@given(st.text(), st.text())
def test_any_text_is_graded_without_an_error(answer: str, gold: str) -> None:
    grade_number(answer, gold)
    grade_number("#### " + answer, "18")
    grade_number("\\boxed{" + answer, "18")


@given(st.text("0123456789.,-/ $%x^\\{}()=<>#eEk±", max_size=40))
def test_any_arithmetic_looking_text_is_graded_without_an_error(text: str) -> None:
    for form in ("{}", "#### {}", "The answer is {}"):
        grade_number(form.replace("{}", text), "18")
    read_gold(text)


HOSTILE = [
    "9" * 200_000,
    "1," * 100_000,
    "1 " * 100_000,
    "(" * 100_000 + "18",
    "\\boxed{" * 50_000,
    "\\boxed{}" * 50_000,
    "\\frac{" * 50_000,
    "<think>" * 50_000,
    "</think>" * 50_000,
    "<answer>" * 50_000,
    "the answer " * 50_000,
    "the answer is " * 50_000,
    "9^" * 100_000 + "9",
    "1e" + "9" * 10_000,
    "1/" * 100_000,
    " " * 200_000 + "1" + " " * 200_000,
    "####" * 50_000,
    "not 1" * 50_000,
    "<<" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_time_grows_with_length_only(text: str) -> None:
    """Eight times the text may take little more than eight times as long (sixty-four would be quadratic)."""

    def seconds(answer: str) -> float:
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            grade_number(answer, "18")
            best = min(best, time.process_time() - start)
        return best

    whole = seconds(text)
    assert whole < 30 * seconds(text[: len(text) // 8]) + 0.05


def test_unusable_golds_are_named() -> None:
    for gold in ("", "(see picture)", "NaN", "inf", "3 or 4", "#### "):
        assert grade_number("The answer is 3.", gold).reason == "the gold answer is not a number"


def test_a_non_terminating_gold_accepts_its_rounding() -> None:
    assert grade_number("The answer is 0.333.", "1/3").correct
    assert not grade_number("The answer is 0.33.", "1/3").correct
    assert not grade_number("The answer is 0.334.", "1/3").correct
    assert not grade_number("The answer is 0.333.", "0.3333").correct
