"""A bound, or a value under a condition, is no value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.rewards.numbers import grade_number

BOUNDS = (
    "under {}|over {}|below {}|above {}|at least {}|at most {}|fewer than {}|no more than {}|not less than {}"
    "|up to {}|a minimum of {}|less than or equal to {}|just under {}|almost {}|nearly {}|close to {}|> {}"
    "|<= {}|≥{}|{} or more|{} or fewer|{} and above|{} at most|{} at least|{}+|{} max|over a total of {}"
    "|in excess of {}|capped at {}|greater than or equal {}|no later than {}|{} or better|≦ {}"
)
IN_CHINESE = ["至少{}", "不超过{}", "大于等于{}", "不到{}", "{}以上", "{}个以下", "{}多"]


@pytest.mark.parametrize("bound", BOUNDS.split("|"))
@pytest.mark.parametrize("form", ["{}", "The answer is {}.", "#### {}", "\\boxed{\\text{{}}}", "He pays {}."])
def test_a_bound_is_no_value(bound: str, form: str) -> None:
    for number in ("18", "$18"):
        answer = form.replace("{}", bound.replace("{}", number))
        grade = grade_number("18", answer)
        assert not grade.correct, answer
        assert grade.reason in ("a bound or a range, not a value", "the number is denied"), answer


@pytest.mark.parametrize("bound", [*IN_CHINESE, "答案至少是{}"])
def test_bounds_in_chinese(bound: str) -> None:
    for form in ("{}", "答案是{}。", "最终答案：{}"):
        assert not grade_number("18", form.replace("{}", bound.replace("{}", "18"))).correct


@given(st.integers(0, 10**6), st.sampled_from(BOUNDS.split("|")), st.integers(0, 10**6))
def test_a_bound_in_the_working_does_not_matter(bound: int, form: str, value: int) -> None:
    assert grade_number(str(value), f"He needs {form.replace('{}', str(bound))}.\n#### {value}").correct


@pytest.mark.parametrize(
    "answer",
    [
        "That adds up to 18.",
        "Which rounds up to 18%.",
        "There are 18 left over.",
        "The maximum is 18.",
        "He needs 18 at least once.",
        "Of more than 30, it is 18.",
        "The answer is about 18.",
        "It must be at least $\\boxed{18}$.",
        "答案约为18。",
        "答案是18左右。",
    ],
)
def test_what_only_sounds_like_a_bound(answer: str) -> None:
    assert grade_number("18", answer).correct


CONDITIONS = [
    "18 if x>0, otherwise 19",
    "The answer is 18 if x > 0.",
    "The answer is 18 if it rains, else 19.",
    "The answer is 18 if he works. Otherwise, it is 19.",
    "The answer is 18 when n is even, and 19 when n is odd.",
    "18 if he works and 19 if he does not",
    "If he works the answer is 18, otherwise it is 19.",
    "If he works, the answer is 18; if not, the answer is 19.",
    "The answer is 18 unless it rains.",
    "The answer is 18 (if x > 0).",
    "The answer is 18, x > 0; 19, x < 0.",
    "It is 19 if he works and 18 otherwise.",
    "The answer is 18 in the first case and 19 in the second.",
    "\\boxed{18 \\text{ if } x>0}",
    "\\boxed{18} if x > 0, otherwise \\boxed{19}",
    "\\boxed{18} if he works, otherwise 19",
    "\\boxed{\\begin{cases} 18 & x > 0 \\\\ 19 & x \\le 0 \\end{cases}}",
    "如果x>0，答案是18，否则是19。",
]


@pytest.mark.parametrize("answer", CONDITIONS)
def test_a_value_under_a_condition_is_no_answer(answer: str) -> None:
    for gold in ("18", "19"):
        grade = grade_number(gold, answer)
        assert not grade.correct
        assert grade.extracted is None


@pytest.mark.parametrize(
    "answer",
    [
        "He has 18 left if he eats some.",
        "If each has 2, then 9 have 18.",
        "The answer is 18 when all is said.",
        "Everything else costs 18.",
        "With x = 2, y is 18.",
        "The answer is 18 for x = 3.",
        "Answer: 18. Otherwise said: eighteen.",
    ],
)
def test_a_condition_that_the_question_sets_does_not_matter(answer: str) -> None:
    assert grade_number("18", answer).correct
