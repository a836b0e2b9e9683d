"""Is an answer marked as it was asked for? Beside correctness, never part of it."""

from __future__ import annotations

from enum import StrEnum

from environments.rewards.answer_text import thinking_blocks, visible
from environments.rewards.statements import explicit_marks


class Mark(StrEnum):
    """How a prompt asks for the answer: a line that begins with ####, a LaTeX box, or <answer> tags."""

    HASHES = "####"
    BOXED = "boxed"
    ANSWER = "answer"


def well_formed(answer: str, mark: Mark = Mark.HASHES) -> bool:
    """Whether `answer` has the mark exactly once outside thinking, and at most one block of thinking.

    Thinking that began in the prompt (a lone closing tag) is a block.
    """
    return thinking_blocks(answer) <= 1 and explicit_marks(visible(answer))[mark] == 1
