"""The LaTeX boxes of an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass

from environments.rewards.quantities import Refused

_BRACE = re.compile(r"\\(?:f?boxed|fbox)\s*\{|\\[{}]|[{}]")
_BETWEEN_BOXES = re.compile(r"[\s$\\;{}.()]*+(?:or|and|to|vs\.?|或|和|或者|&|,)[\s$\\,;{}.()]*+", re.I)


@dataclass(frozen=True)
class Box:
    start: int
    end: int
    content: str


def last_box(text: str) -> Box | None:
    """The last box that holds something.

    Raises:
        Refused: A later one is not closed, or another one is joined to it.
    """
    if "\\" not in text:
        return None
    found, unclosed = boxes(text)
    filled = [box for box in found if box.content]
    if unclosed is not None and (not found or unclosed > found[-1].end):
        raise Refused("the box is not closed")
    if len(filled) > 1:
        other, last = filled[-2:]
        if other.content != last.content and _BETWEEN_BOXES.fullmatch(text, other.end, last.start):
            raise Refused("several boxes")
    return filled[-1] if filled else None


def boxes(text: str) -> tuple[list[Box], int | None]:
    """The closed boxes in the order of their starts, and where the last one starts that is not closed."""
    open_braces: list[re.Match[str]] = []
    found: list[Box] = []
    for brace in _BRACE.finditer(text):
        if brace[0] in ("\\{", "\\}"):
            continue
        if brace[0] != "}":
            open_braces.append(brace)
        elif open_braces:
            opening = open_braces.pop()
            inner = found and found[-1].start > opening.start()  # of boxes in a box the innermost counts
            if opening[0] != "{" and not inner:
                content = text[opening.end() : brace.start()].strip("{} \n")
                found.append(Box(opening.start(), brace.end(), content))
    unclosed = [brace.start() for brace in open_braces if brace[0] != "{"]
    return found, unclosed[-1] if unclosed else None
