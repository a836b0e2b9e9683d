"""What of an answer is visible: thinking, in whatever tags, and comments are not."""

from __future__ import annotations

import pytest

from environments.parsers.families import STOP_TOKENS, THINKING
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
TAGS += [(pair.opener, pair.closer) for pair in THINKING]


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


NEXT_TURNS = [
    "<|im_start|>user",
    "<|start_header_id|>user<|end_header_id|>",
    "<start_of_turn>user",
    "<|turn>user",
    "<|start|>user<|message|>",
    "<｜User｜>",
    "<|user|>",
    "<|im_user|>user<|im_middle|>",
    "]~b]user",
    "[INST]",
]


@pytest.mark.parametrize("end", [*STOP_TOKENS, *NEXT_TURNS])
@pytest.mark.parametrize("stated", ["#### 18", "The answer is 18.", "\\boxed{18}", "18"])
def test_what_follows_the_end_of_the_turn_never_counts(end: str, stated: str) -> None:
    for later in ("20", "\nuser\nNext? The answer is 20.", "\n#### 20", "\n\\boxed{20}"):
        assert grade_number("18", f"{stated}{end}{later}").correct, later


def test_the_turns_own_beginning_is_not_its_end() -> None:
    for begin in ("<|im_start|>assistant\n", "<start_of_turn>model\n", "<|assistant|>\n"):
        assert grade_number("18", f"{begin}The answer is 18.").correct, begin
