"""Numbers in words, English and Chinese, and digits in groups."""

from __future__ import annotations

import pytest

from environments.rewards.numbers import grade_number

ENGLISH = ["one", "twelve", "twenty", "forty-seven", "ninety nine", "one hundred", "three hundred and five"]
ENGLISH += ["two thousand", "eighteen hundred", "ninety-nine thousand nine hundred ninety-nine", "a million"]
READ_AS = [1, 12, 20, 47, 99, 100, 305, 2000, 1800, 99_999, 1_000_000]


@pytest.mark.parametrize(("words", "value"), list(zip(ENGLISH, READ_AS, strict=True)))
def test_number_words(words: str, value: int) -> None:
    for answer in (f"The answer is {words}.", f"#### {words} apples", f"\\boxed{{\\text{{{words}}}}}", words):
        assert grade_number(str(value), answer).correct, answer
        assert not grade_number(str(value + 1), answer).correct
    assert grade_number(str(-value), f"The answer is minus {words}.").correct


@pytest.mark.parametrize(
    ("numeral", "gold"),
    [
        *zip(
            ["十", "十八", "二十五", "一百零五", "两千", "一万八千"],
            [10, 18, 25, 105, 2000, 18_000],
            strict=True,
        ),
        *zip(["二〇二六", "三亿二千万", "百分之二十八"], [2026, 320_000_000, 28], strict=True),
        ("三点五", "3.5"),
        ("四分之三", "3/4"),
    ],
)
def test_chinese_numerals(numeral: str, gold: object) -> None:
    assert grade_number(str(gold), f"答案是{numeral}。").correct
    assert grade_number(str(gold), f"最终答案：{numeral}个苹果").correct


@pytest.mark.parametrize(
    ("words", "gold"),
    [
        ("two and a half", "2.5"),
        ("Two and a half hours", "2.5"),
        ("two and three-quarters", "2.75"),
        ("one hundred and one third", "301/3"),
        ("2 and a half", "2.5"),
        ("a half", "0.5"),
        ("half", "0.5"),
        ("three quarters", "0.75"),
    ],
)
def test_parts_in_words(words: str, gold: str) -> None:
    for form in ("{}", "The answer is {}.", "#### {}", "\\boxed{\\text{{}}}"):
        assert grade_number(gold, form.replace("{}", words)).correct, form
        assert not grade_number("2", form.replace("{}", words)).correct, form


@pytest.mark.parametrize("written", ["70 000", "$70 000", "1 070 000", "70 000.5"])
@pytest.mark.parametrize("form", ["{}", "The total is {} dollars", "So 3 + 4 = 7, and it is {}.", "#### {}"])
def test_spaces_between_thousands(written: str, form: str) -> None:
    answer = form.replace("{}", written)
    assert grade_number(written.strip("$").replace(" ", ""), answer).correct
    assert not grade_number("70", answer).correct
    assert not grade_number("0", answer).correct


@pytest.mark.parametrize("row", ["18 18", "18 18 18", "18 000 18", "18 1800", "018 018", "18 \\\\ 19"])
def test_a_row_of_numbers_is_no_group_of_thousands(row: str) -> None:
    for form in ("{}", "The total is {}.", "The answer is {}", "#### {}", "\\boxed{{}}"):
        assert not grade_number("18", form.replace("{}", row)).correct


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        ("1", "The answer is one of these."),
        ("1", "No one knows."),
        ("1", "答案是一样的。"),
        ("102", "答案是一百二。"),  # colloquially 120
        ("3", "The answer is two three."),
        ("20", "eighteen or twenty"),
    ],
)
def test_what_only_looks_like_a_number_word(gold: str, answer: str) -> None:
    assert not grade_number(gold, answer).correct
