"""The number grader: the cases, and properties that hold for every number."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from environments.rewards.numbers import NO_GOLD, grade_number, read_gold
from tests.components import cases

CHOSEN_OTHERWISE = {"unevaluated expression"}
"""Why of the debatable cases where docs/graders.md gives a reason for another choice."""


def rows() -> list[dict[str, str]]:
    every = [json.loads(line) for line in (cases() / "grading.jsonl").read_text("utf-8").splitlines()]
    return [row for row in every if row["strictness"] == "must" or row["why"] not in CHOSEN_OTHERWISE]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_cases(row: dict[str, str]) -> None:
    grade = grade_number(row["gold"], row["model_answer"])
    assert grade.correct == row["should_pass"], (row["why"], grade)
    assert (grade.extracted is not None) or not grade.correct


STATED: list[Callable[[str], str]] = [
    lambda n: n,
    lambda n: f"#### {n}",
    lambda n: f"so 3 + 4 = 7\n#### {n}\n",
    lambda n: f"The answer is {n}.",
    lambda n: f"**Final answer:** {n} apples",
    lambda n: f"Answer:\n\n**{n}**",
    lambda n: f"最终答案是{n}。",
    lambda n: f"\\boxed{{{n}}}",
    lambda n: f"\\[ \\boxed{{\\text{{{n}}}}} \\]",
    lambda n: f"\\fbox{{ {n} }}",
    lambda n: f"I get $\\boxed{{x = {n}}}$.",
    lambda n: f"<answer>\n{n}\n</answer> 8",
    lambda n: f"<think>7 or 8?</think>The answer is {n}!",
    lambda n: f"#### 8\n</think>\n#### {n}",
    lambda n: f"5 * 5 = 25\nIt costs {n} dollars.",
    lambda n: f"The answer is 8. Wait, actually it is {n}.",
    lambda n: f"The answer is not 8 but {n}.",
    lambda n: f"\\boxed{{8}}\nOn second thought: \\boxed{{{n}}}",
    lambda n: f'{{"steps": 8, "answer": "{n}"}}',
    lambda n: f"The answer is {n}.\n\nStep 8 was hard, and 2 + 2 = 4.",
    lambda n: f"The answer is {n}<|im_end|>8",
]


def spellings(value: Fraction) -> list[str]:
    """Ways to write a number of which the gold is the plain decimal or fraction."""
    sign, size = "-" if value < 0 else "", abs(value)
    if size.denominator == 1:
        grouped = f"{size.numerator:,}"
        forms = [f"{size.numerator}", f"{size.numerator}.0", grouped, grouped.replace(",", "{,}")]
        forms += [grouped.replace(",", "\\,"), grouped.replace(",", "\u202f"), f"{size.numerator}e0"]
        forms.append("".join(chr(ord("０") + int(c)) for c in str(size.numerator)))
    else:
        whole, over = divmod(size.numerator, size.denominator)
        forms = [f"{size.numerator}/{size.denominator}"]
        forms.append(f"\\frac{{{size.numerator}}}{{{size.denominator}}}")
        if whole:
            forms += [f"{whole} {over}/{size.denominator}"]
            forms += [f"{whole}\\frac{{{over}}}{{{size.denominator}}}"]
        if 10**6 % size.denominator == 0:
            forms += [f"{float(size):.6f}", f"{int(size * 10**6)}e-6"]
    signs = ["-", "\u2212", "–"] if sign else [""]
    return [sign + form for sign in signs for form in forms]


values = st.one_of(
    st.integers(-(10**9), 10**9).map(Fraction),
    st.integers(-(10**7), 10**7).map(lambda n: Fraction(n, 100)),
    st.fractions(-1000, 1000, max_denominator=64),
)


@given(values, st.sampled_from(STATED), st.data())
def test_a_number_is_recognised_however_it_is_written_and_stated(
    value: Fraction, state: Callable[[str], str], data: st.DataObject
) -> None:
    written = data.draw(st.sampled_from(spellings(value)))
    grade = grade_number(str(value), state(written))
    assert grade.correct, (state(written), grade)
    assert grade_number(f"some working = 12\n#### {written}", state(written)).correct


@given(values, values, st.sampled_from(STATED), st.data())
def test_another_number_is_never_right(
    gold: Fraction, value: Fraction, state: Callable[[str], str], data: st.DataObject
) -> None:
    assume(gold != value)
    written = data.draw(st.sampled_from(spellings(value)))
    rounds = gold.limit_denominator(64) == gold and abs(gold - value) < Fraction(1, 1000)
    assert rounds or not grade_number(str(gold), state(written)).correct, state(written)


@pytest.mark.parametrize(
    "thinking",
    [
        "<think>{}</think>I do not know.",
        "<think>{}",
        "{}</think>",
        "<think>a</think><think>{}</think> None.",
        "<THINKING>{}</THINKING>",
        "<REASONING_SCRATCHPAD>{}</REASONING_SCRATCHPAD>Sorry.",
        "[THINK]{}[/THINK]",
        "<|channel|>analysis<|message|>{}<|end|>",
        "<think>{}</think><answer>I could not solve it</answer>",
    ],
)
def test_what_is_only_thought_never_counts(thinking: str) -> None:
    for state in STATED:
        if "think>" not in state("18") and "|>" not in state("18"):
            assert not grade_number("18", thinking.replace("{}", state("18"))).correct


@given(st.integers(1, 999), st.integers(1, 999))
def test_several_values_are_no_answer(a: int, b: int) -> None:
    assume(a != b)
    joined = (
        "{} or {}|{}-{}|{} to {}|between {} and {}|{} ± {}|{}, {}|{}/{}/2|{} apples or {} pears|{} (or {})"
        "|{} and {}|either {} or maybe {}|{}; {}|{}或{}|{} \\pm {}|{}:{}|{} + {}|{} - {}|{} * {}|{}^{}"
        "|\\boxed{{{}}} or \\boxed{{{}}}|\\boxed{{{}, {}}}|[{}, {}]|{} vs. {}|{}, but it could be {}"
    )
    for hedge in joined.split("|"):
        for statement in ("The answer is " + hedge.format(a, b), "#### " + hedge.format(a, b)):
            for gold in (a, b, -b):
                assert not grade_number(str(gold), statement).correct, statement


@given(st.text(), st.text())
def test_any_text_is_graded_without_an_error(answer: str, gold: str) -> None:
    for form in ("{}", "#### {}", "\\boxed{{}", "The answer is {}", "<answer>{}"):
        grade_number(gold, form.replace("{}", answer))
        grade_number("18", form.replace("{}", answer))


@given(st.text("0123456789.,-/ $%x^\\{}()=<>#eEk±_*~'一十万分之", max_size=40))
def test_any_arithmetic_looking_text_is_graded_without_an_error(text: str) -> None:
    for form in ("{}", "#### {}", "The answer is {}", "\\boxed{{}}"):
        grade_number("18", form.replace("{}", text))
    read_gold(text)


def test_unusable_golds_are_named() -> None:
    for gold in ("", "(see picture)", "NaN", "inf", "3 or 4", "#### ", "1/0", "9" * 5000):
        assert grade_number(gold, "The answer is 3.").reason == NO_GOLD
        assert read_gold(gold) is None


def test_a_gold_may_be_a_solution() -> None:
    assert read_gold("It is \\boxed{\\frac{3}{4}}.") == Fraction(3, 4)
    assert read_gold("5*4=<<5*4=20>>20\n#### 1,234.50") == Fraction("1234.5")
    assert grade_number("28%", "The answer is 0.28").correct
    assert not grade_number("28%", "0.28%").correct


def test_a_non_terminating_gold_accepts_its_rounding() -> None:
    assert grade_number("1/3", "The answer is 0.333.").correct
    assert not grade_number("1/3", "The answer is 0.33.").correct
    assert not grade_number("1/3", "The answer is 0.334.").correct
    assert not grade_number("0.3333", "The answer is 0.333.").correct


@pytest.mark.parametrize(
    ("gold", "rounded"), [("1/3000", "0.000"), ("-1/3000", "-0.000"), ("1/30000", "0.0000")]
)
def test_a_rounding_has_a_significant_figure(gold: str, rounded: str) -> None:
    assert not grade_number(gold, f"The answer is {rounded}.").correct
    assert grade_number("0", f"The answer is {rounded}.").correct
    assert grade_number("1/700", "#### 0.001").correct


@given(st.fractions(-1000, 1000, max_denominator=1000), st.integers(0, 8))
def test_a_rounding_counts_from_three_decimals_on(gold: Fraction, decimals: int) -> None:
    rounded = round(gold, decimals)
    terminates = 10**20 % gold.denominator == 0
    expected = rounded == gold or (decimals >= 3 and rounded != 0 and not terminates)
    answer = f"The answer is {Decimal(rounded.numerator) / rounded.denominator:.{decimals}f}."
    assert grade_number(str(gold), answer).correct == expected, answer


def test_nothing_is_evaluated(tmp_path: object) -> None:
    for text in (
        f"__import__('os').mkdir('{tmp_path}/seen')",
        "\\boxed{1000000!}",
        "9**9**9**9",
        "1e999999999",
    ):
        assert not grade_number("18", text).correct
    import os

    assert os.listdir(str(tmp_path)) in ([], ["home"])


@pytest.mark.parametrize("written", ["70\\!,\\!000", "70\\!,000", "70,\\!000", "70\\,000", "70\\!000"])
def test_latex_thousands(written: str) -> None:
    assert grade_number("70000", f"\\boxed{{{written}}}").correct
    assert not grade_number("70", f"\\boxed{{{written}}}").correct


def test_a_gold_may_be_a_number() -> None:
    for gold in (18, 18.0, Fraction(18), Fraction(36, 2)):
        assert grade_number(gold, "#### 18").correct
    assert grade_number(Fraction(-3, 4), "The answer is -0.75.").correct
    assert grade_number(0.1, "#### 1/10").correct
    assert read_gold(-5) == -5
    for gold in (float("nan"), float("inf"), 10**5000):
        assert grade_number(gold, "#### 18").reason == NO_GOLD


@pytest.mark.parametrize(
    "answer",
    [
        "\\boxed{x - 18}",
        "\\boxed{2x = 18}",
        "\\boxed{18 19 20}",
        "#### 18 19 20",
        "\\boxed{x = 18, y = 19}",
        "The answer is 18 plus 5.",
        "The answer is half of 18.",
    ],
)
def test_a_term_or_a_row_of_numbers_is_no_number(answer: str) -> None:
    assert not grade_number("18", answer).correct
