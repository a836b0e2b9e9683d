"""A summary made of the beginnings of the turns themselves: offline, and always the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

EXTRACTIVE = "extractive"
"""Its name among the summarizers."""
SHORTEST_LINE = 60
"""Characters; with less for each turn, turns in the middle are left out instead."""
TAKEN = 4
"""So many times as much of a turn is looked at as its line may take: white space goes."""
_MARKUP = re.compile(r"</?(?:tool_call|tool_response|think)>")


def extract(turns: Sequence[tuple[str, str]], chars: int) -> str:
    """One line for each turn, about `chars` characters in all.

    Args:
        turns: Role and text of each.
        chars: At most, but for the line that says how many turns are left out.
    """
    most = max(2, chars // SHORTEST_LINE)
    if len(turns) > most:
        first = (most + 1) // 2
        left_out = len(turns) - most
        lines = [
            *_lines(turns[:first], SHORTEST_LINE),
            f"({left_out} more turns)",
            *_lines(turns[len(turns) - (most - first) :], SHORTEST_LINE),
        ]
    else:
        lines = _lines(turns, chars // max(1, len(turns)))
    return "\n".join(lines)


def _lines(turns: Sequence[tuple[str, str]], width: int) -> list[str]:
    return [_cut(f"{role}: {_said(text, width)}", width) for role, text in turns]


def _cut(text: str, width: int) -> str:
    """On one line. Nothing is masked: the turns that stay are not either."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _said(text: str, width: int) -> str:
    """The beginning of a turn without its thinking."""
    _, closed, after = text.partition("</think>")
    said = after if closed and after.strip() else text
    return _MARKUP.sub(" ", said[: width * TAKEN])
