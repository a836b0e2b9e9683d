"""Is an answer marked as it was asked for? Beside correctness, never part of it."""

from __future__ import annotations

import re
from enum import StrEnum

from environments.rewards.answer_text import thinking_blocks, visible
from environments.rewards.boxes import boxes

_MARKED_LINE = re.compile(r"^[ \t]*#{4}(?!#)[ \t]*\S", re.M)
_ANSWER_TAG = re.compile(r"<answer>(?!\s*(?:</?answer>|\Z))", re.I)


class Mark(StrEnum):
    """How a prompt asks for the answer: a line that begins with ####, a LaTeX box, or <answer> tags."""

    HASHES = "####"
    BOXED = "boxed"
    ANSWER = "answer"


def well_formed(answer: str, mark: Mark = Mark.HASHES) -> bool:
    """Whether `answer` has the mark exactly once outside thinking, and at most one block of thinking.

    A mark that holds nothing is none. Thinking that began in the prompt (a lone closing tag) is a block.
    """
    return thinking_blocks(answer) <= 1 and _count(mark, visible(answer)) == 1


def _count(mark: Mark, text: str) -> int:
    if mark is Mark.BOXED:
        return sum(bool(box.content) for box in boxes(text)[0])
    return len((_MARKED_LINE if mark is Mark.HASHES else _ANSWER_TAG).findall(text))
