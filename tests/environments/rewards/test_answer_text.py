"""What of an answer is visible: thinking, in whatever tags, and comments are not."""

from __future__ import annotations

import pytest

from environments.rewards.answer_text import thinking_blocks, visible
from environments.rewards.numbers import grade_number

NAMES = "think|thinking|thought|thoughts|reasoning|scratchpad|scratch_pad|Scratch-Pad|REASONING_SCRATCHPAD"
NAMES += "|inner_monologue|inner thoughts|chain_of_thought|reflection|analysis|seed:think|think id='1'"
TAGS = [(f"<{name}>", f"</{name.split(' id')[0]}>") for name in NAMES.split("|")]
TAGS += [
    ("◁think▷", "◁/think▷"),
    ("[THINK]", "[/THINK]"),
    ("[Thinking]", "[/Thinking]"),
    ("&lt;think&gt;", "&lt;/think&gt;"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
]


@pytest.mark.parametrize(("opening", "closing"), TAGS)
@pytest.mark.parametrize("case", [str, str.upper, str.lower])
def test_an_answer_that_is_only_thought_never_counts(opening: str, closing: str, case: type[str]) -> None:
    opening, closing = (tag if "&" in tag else case(tag) for tag in (opening, closing))
    for stated in ("18", "The answer is 18.", "\\boxed{18}", "#### 18"):
        for answer in (f"{opening}{stated}{closing}", f"{opening}{stated}", f"{stated}{closing}"):
            assert not grade_number("18", answer).correct, answer
        assert grade_number("18", f"{opening}The answer is 20.{closing}\n{stated}").correct


def test_other_tags_are_visible() -> None:
    for text in ("<b>18</b>", "<answer>18</answer>", "[Analysis] 18", "a <b and c> 18", "<step>18</step>"):
        assert visible(text) == text
        assert thinking_blocks(text) == 0


def test_comments_are_unseen() -> None:
    assert not grade_number("18", "<!-- The answer is 18. -->").correct
    assert grade_number("18", "<!-- 20 -->18<!-- 20 -->").correct
    assert grade_number("18", "2 * 9 = <<2*9=18>>18").correct
