"""What an answer strikes out, denies or only asks is not what it states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.rewards.numbers import grade_number

STRUCK = [
    "<del>{}</del>",
    "~~{}~~",
    "<s>It costs {}.</s> I am not done.",
    "The answer is ~~{}~~.",
    "The answer is <span style='text-decoration: line-through'>{}</span>.",
    "The answer is <del><b>{}</b></del>.",
    "<strike class='x'>The answer is {}.</strike>",
    "\\boxed{\\cancel{{}}}",
    "Total: \\sout{{} apples}",
    "#### ~~{}~~",
    "<answer><del>{}</del></answer>",
    "9 + 9 makes {}.\nThe answer is ~~{}~~",
]


@pytest.mark.parametrize("form", STRUCK)
def test_what_is_struck_out_is_not_stated(form: str) -> None:
    grade = grade_number("18", form.replace("{}", "18"))
    assert not grade.correct
    assert grade.extracted is None
    assert grade.reason == "the number is struck out"


@pytest.mark.parametrize("form", ["~~20~~ {}", "The answer is <del>20</del> <ins>{}</ins>.", "{} ~~or 20~~"])
def test_what_replaces_a_struck_number_counts(form: str) -> None:
    assert grade_number("18", form.replace("{}", "18")).correct
    assert not grade_number("20", form.replace("{}", "18")).correct


def test_numbers_overlaid_with_strokes_are_struck_out() -> None:
    assert not grade_number("18", "1\u03368\u0336").correct
    assert grade_number("20", "1\u03368\u0336 20").correct


def test_tokens_for_beginning_and_end_strike_nothing_out() -> None:
    assert grade_number("18", "<s>The answer is 18.</s>").correct
    assert grade_number("18", "<s>20</s> 18").correct


NEGATIONS = [
    "The answer is not {}.",
    "The answer isn't quite {}",
    "it is no longer {}",
    "The answer is not really {}, I fear.",
    "It was never {}.",
    "It isn't remotely {}.",
    "The answer isn't as high as {}.",
    "The total ceases to be {}.",
    "It can't be {}.",
    "The answer is not \\boxed{{}}.",
    "The answer is definitely not **{}**!",
    "The result is anything but {}.",
    "It is far from {}",
    "It doesn't come to {}.",
    "$x \\ne {}$",
    "{} is not the answer.",
    "{} is wrong.",
    "{} isn't right",
    "{} would be too many.",
    "{} can't be the answer.",
    "{} does not work.",
    "The answer can't possibly be {}.",
    "I retract {}.",
    "I was wrong to say {}.",
    "It is not {}, 5 or 6.",
    "答案不再是{}。",
    "答案绝对不是{}",
]
OPINIONS = [
    "I don't think the answer is {}",
    "I do not believe that it is {}.",
    "I doubt the total is {}.",
    "I doubt {} is right.",
    "I don't think {} is the answer.",
    "One might think the answer is {}.",
    "It is tempting to say that it is {}.",
    "I'm not sure that the answer is {}.",
    "It is not true that the answer is {}.",
    "It is wrong to say that the answer is {}.",
    "There is no way the answer is {}.",
    "No one says that it is {}.",
    "A common wrong answer is {}.",
    "我不认为答案是{}。",
    "我怀疑答案是{}。",
]


@pytest.mark.parametrize("form", [*NEGATIONS, *OPINIONS])
def test_what_is_denied_is_not_stated(form: str) -> None:
    grade = grade_number("18", form.replace("{}", "18"))
    assert not grade.correct
    assert grade.extracted is None
    assert grade.reason == "the number is denied"


@given(st.sampled_from([*NEGATIONS, *OPINIONS]), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_denial_beside_a_statement_changes_nothing(form: str, denied: int, stated: int) -> None:
    denial = form.replace("{}", str(denied)).rstrip(".!。") + "."
    for answer in (f"{denial}\n\n#### {stated}", f"{denial}\nThe answer is {stated}."):
        assert grade_number(str(stated), answer).correct, answer
        assert denied == stated or not grade_number(str(denied), answer).correct, answer


@pytest.mark.parametrize(
    "answer",
    [
        "The answer isn't 20; it is 18.",
        "I don't think it's 20, the answer is 18.",
        "I'm not sure why, but the answer is 18.",
        "There is no doubt that the answer is 18.",
        "It is not hard to see that the answer is 18.",
        "This can't be negative, so it is 18.",
        "20 is not the answer; 18 is.",
        "The number of apples not eaten is 18.",
        "The number of wrong answers is 18.",
        "There are 18 students who do not work.",
        "It used to be 20, now it is 18.",
        "Since 20 is too high, the answer is 18.",
        "Total: 18.\nNot one was lost.",
    ],
)
def test_a_denial_of_something_else_denies_no_number(answer: str) -> None:
    assert grade_number("18", answer).correct


@pytest.mark.parametrize("answer", ["I don't think the answer is eighteen.", "It is not eighteen."])
def test_number_words_are_denied_as_well(answer: str) -> None:
    assert not grade_number("18", answer).correct


@pytest.mark.parametrize("sign", "$€£¥₹₩₽₫₪฿₱₦₺₿৳￦￥")
def test_amounts_are_denied_and_taken_back_in_any_currency(sign: str) -> None:
    for form in ("I don't think it is {}", "It is not {}.", "{} is wrong.", "The answer is not **{}**."):
        assert grade_number("18", form.replace("{}", f"{sign}18")).reason == "the number is denied", form
    assert grade_number("18", f"The answer is {sign}20. Actually {sign}18").correct
    assert grade_number("-18", f"#### ({sign}18)").correct
    assert grade_number("18", f"The answer is {sign}18").correct


@pytest.mark.parametrize("form", [form for form in [*NEGATIONS, *OPINIONS] if form.isascii()])
def test_a_denial_may_be_wrapped_at_any_word(form: str) -> None:
    words = form.replace("{}", "18").split(" ")
    for at in range(1, len(words)):
        if words[at - 1].isalpha() and words[at].isalpha() and words[at].islower():
            answer = "\n".join((" ".join(words[:at]), " ".join(words[at:])))
            assert not grade_number("18", answer).correct, answer


def test_a_question_states_nothing_until_it_is_confirmed() -> None:
    for question in ("Is it 18?", "Could the answer be 18?", "Are there 18 apples?"):
        assert grade_number("18", question).reason == "it asks, and states nothing"
        assert grade_number("18", f"{question} Yes.").correct
        assert not grade_number("18", f"{question} Or 20?").correct
