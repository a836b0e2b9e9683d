"""Whether an answer is marked as it was asked for, once, with at most one block of thinking."""

from __future__ import annotations

import pytest

from environments.rewards.well_formed import Mark, well_formed


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("6 * 3 = 18\n#### 18", Mark.HASHES),
        ("<think>#### 17?</think>\n#### 18", Mark.HASHES),
        ("#### 17?\n</think>\n#### 18", Mark.HASHES),
        ("It is $\\boxed{18}$.", Mark.BOXED),
        ("<think>x</think><answer>18</answer>", Mark.ANSWER),
    ],
)
def test_well_formed(answer: str, mark: Mark) -> None:
    assert well_formed(answer, mark)
    assert not any(well_formed(answer, other) for other in Mark if other != mark)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "18",
        "####",
        "so ####18 it is",
        "#### 18\n#### 18",
        "<think>#### 18",
        "<think>a</think>#### 18<think>b</think>",
        "##### 18",
        "<|im_end|>\n#### 18",
    ],
)
def test_ill_formed(answer: str) -> None:
    assert not well_formed(answer)


@pytest.mark.parametrize(
    ("empty", "mark", "filled"),
    [
        ("\\boxed{ }", Mark.BOXED, "\\boxed{18}"),
        ("<answer> </answer>", Mark.ANSWER, "<answer>18</answer>"),
        ("<answer>", Mark.ANSWER, "<answer>18"),
        ("#### \n", Mark.HASHES, "#### 18"),
    ],
)
def test_a_mark_that_holds_nothing_is_none(empty: str, mark: Mark, filled: str) -> None:
    assert not well_formed(empty, mark)
    assert well_formed(f"{empty}\n{filled}", mark)
