"""Prose on a terminal: no line ends inside a word, also where the text comes in pieces."""

from __future__ import annotations

import re
import unicodedata

DEEPEST_INDENT = 8
_PIECES = re.compile(r"\s+|[^\s\u2e80-\uffdc]+|[\u2e80-\uffdc]")
"""Blanks, words, and characters of scripts that are written without blanks."""


def display_width(text: str) -> int:
    """Columns of a terminal that `text` takes: two for wide characters, none for combining ones."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def wrapped(text: str, columns: int) -> str:
    """`text` with its long lines broken between words; what follows a break is indented like the line."""
    return "\n".join(_wrapped_line(line, columns) for line in text.split("\n"))


def _wrapped_line(line: str, columns: int) -> str:
    if display_width(line) <= columns:
        return line
    indent = line[: len(line) - len(line.lstrip(" "))][:DEEPEST_INDENT]
    lines, current = [], ""
    for piece in _PIECES.findall(line):
        if current.strip() and display_width(current + piece) > columns:
            lines.append(current.rstrip())
            current = indent + piece.lstrip()
        else:
            current += piece
    return "\n".join([*lines, current] if current.strip() else lines)


class Flow:
    """Where the cursor is while text is written piece by piece.

    A word that crosses the edge is taken back and written again on the next line, so nothing is held back.
    The terminal itself breaks words that are longer than a line, and scripts without blanks.
    """

    def __init__(self) -> None:
        self.column = 0
        """Columns of the line that are written on."""
        self._word = ""
        """What is written of a word that is not complete."""

    def feed(self, text: str, columns: int) -> str:
        """What is to be written for the next piece of text."""
        return "".join(self._character(c, columns) for c in text)

    def restart(self) -> None:
        """A line begins."""
        self.column, self._word = 0, ""

    def _character(self, c: str, columns: int) -> str:
        if c == "\n":
            self.restart()
            return c
        width = 8 - self.column % 8 if c == "\t" else display_width(c)
        crosses = self.column + width > columns
        if c.isspace():
            if crosses:
                self.restart()
                return "\n"
            self.column, self._word = self.column + width, ""
            return c
        before = ""
        if crosses:
            before = self._next_line(wide=width > 1)
        self.column += width
        self._word = "" if width > 1 else self._word + c
        return before + c

    def _next_line(self, wide: bool) -> str:
        """Takes the word that has begun there."""
        word = "" if wide else self._word
        start = self.column - display_width(word)
        if not word or start <= 0:  # the terminal breaks it
            self.restart()
            return ""
        self.column = display_width(word)
        return f"\r\x1b[{start}C\x1b[K\n{word}"
