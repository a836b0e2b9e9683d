"""What a later sentence takes back, replaces or confirms; what a closing note says."""

from __future__ import annotations

import pytest

from environments.rewards.numbers import grade_number

STATEMENTS = ["The answer is 18.", "\\boxed{18}", "#### 18", "<answer>18</answer>", "So he pays $18."]
RETRACTIONS = [
    " No wait, {}.",
    "\n\nWait, that's wrong; it's {}.",
    "\nI was wrong, the correct total is {}.",
    "\nCorrection: {}.",
    "\n\n**Correction:** {}",
    "\nOops, I made a small mistake. That makes {} in all.",
    "\nHmm, no, scratch that: {}",
    "\nActually, {} apples.",
    "\nHold on, it should be {}.",
    "\nLet me correct that: {}",
    "\nThat was a mistake. The total is {}.",
    "\n等等，不对，应该是{}。",
    "\nEDIT: {}",
    "\nUpdate: the answer is {}.",
    "\nCorrected total: {}",
    "\nJust kidding, {}.",
    "\nNo wait\n{}",
]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("retraction", RETRACTIONS)
def test_what_is_taken_back_does_not_count(statement: str, retraction: str) -> None:
    answer = statement + retraction.replace("{}", "20")
    assert grade_number("20", answer).correct, answer
    assert not grade_number("18", answer).correct, answer


@pytest.mark.parametrize("statement", STATEMENTS)
def test_an_answer_taken_back_with_no_other_is_refused(statement: str) -> None:
    for words in (" Wait, that's wrong.", " (Wrong!)", "\nI made a mistake.", "\nWait, it is not 18."):
        assert grade_number("18", statement + words).extracted is None, statement + words


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_second_look_that_confirms_takes_nothing_back(statement: str) -> None:
    for words in ("\nWait, let me check: 3 * 6 = 18. Yes.", "\nWait, let me see. Yes, that's correct."):
        assert grade_number("18", statement + words).correct, statement + words
    assert grade_number("18", f"Wait, that's wrong: 20. {statement}").correct


@pytest.mark.parametrize("statement", ["A: 18.", "**Total: 18**", "He pays $18.", "3 * 6 = 18"])
@pytest.mark.parametrize(
    "closing",
    [
        "Let me know if you need 5 more examples!",
        "Note: assumes 30 days.",
        "**Note:** 1 month has 30 days.\n\nI hope this helps with all 3 tasks.",
        "Now on to the other 2 problems.",
        "Would you like the other 2 as well?",
    ],
)
def test_closing_notes_and_offers_state_nothing(statement: str, closing: str) -> None:
    assert grade_number("18", f"5 + 5 = 10\n\n{statement}\n\n{closing}").correct


def test_what_follows_a_total_is_no_closing() -> None:
    assert grade_number("9", "Total: 18\n\nEach person pays 9.").correct
    assert grade_number("18", "Note: he pays 18.").correct


@pytest.mark.parametrize(
    "answer",
    [
        "The answer is 18, no, 20.",
        "The answer is 18? No, 20.",
        "答案是18？不，是20。",
        "The answer is 18... no, 20.",
        "The answer is 18, I mean 20.",
        "The answer is 18, make that 20 apples",
        "The answer was 18 but is now 20.",
        "You may think the answer is 18, but it is 20.",
        "Some say the answer is 18, but the correct total is 20.",
    ],
)
def test_what_is_replaced_in_the_same_sentence_does_not_count(answer: str) -> None:
    assert grade_number("20", answer).correct
    assert not grade_number("18", answer).correct
