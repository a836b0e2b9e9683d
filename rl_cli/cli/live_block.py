"""Some lines at the bottom of a terminal that are repainted in place.

The cursor stays visible on the line below the block, so a killed process leaves nothing to put right.
A frame is one write that overwrites what stood there and erases only what is left over: nothing flickers.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

from rl_cli.cli.event_lines import clip
from rl_cli.cli.wrapping import display_width, wrapped
from rl_cli.core.printable import printable

STYLES = {
    "": "",
    "dim": "\x1b[2m",
    "bold": "\x1b[1m",
    "good": "\x1b[32m",
    "warn": "\x1b[33m",
    "bad": "\x1b[31m",
}
PLAIN = "\x1b[0m"
ERASE_RIGHT, ERASE_BELOW = "\x1b[K", "\x1b[J"


@dataclass(frozen=True)
class Piece:
    """Text of one line in one style."""

    text: str
    style: str = ""


Line = Sequence[Piece]


class LiveBlock:
    """Owns the last lines of the terminal from the first `paint` on.

    Args:
        out: A terminal.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._colour = not os.environ.get("NO_COLOR")
        self._widths: list[int] = []
        """Columns that each line on the screen takes."""
        self._shown: list[list[Piece]] | None = None
        self._size: tuple[int, int] | None = None
        """Of the terminal when that was painted."""
        self._settling: tuple[int, int] | None = None
        """A size that was just seen: while a window is being dragged nobody knows where its lines are."""

    def size(self) -> tuple[int, int]:
        """(columns, rows) that a block may take now."""
        columns, rows = shutil.get_terminal_size()
        return max(1, columns - 1), max(1, rows - 1)

    def paint(self, lines: Sequence[Line], above: Sequence[str] = ()) -> None:
        """Shows `lines` in place of those before.

        Args:
            lines: What does not fit into the terminal is cut off.
            above: Lines that stay: they go into the terminal's history, above the block.
        """
        columns, rows = self.size()
        shown = [_fitted(line, columns) for line in lines[:rows]]
        if not above and (shown, (columns, rows)) == (self._shown, self._size):
            return
        resized = self._size not in ((columns, rows), None)
        if resized and lines and not above and self._settling != (columns, rows):
            self._settling = (columns, rows)
            return
        self._settling = None
        self._shown, self._size = shown, (columns, rows)
        texts = [part for text in above for part in wrapped(printable(text), columns).split("\n")]
        texts += [self._styled(line) for line in shown]
        start = self._back_to_top(columns + 1, rows) + (ERASE_BELOW if resized else "")
        self._out.write(start + "".join(f"{text}{ERASE_RIGHT}\n" for text in texts) + ERASE_BELOW)
        self._out.flush()
        self._widths = [sum(display_width(piece.text) for piece in line) for line in shown]

    def leave(self) -> None:
        """Lets the block stand; the next one is painted below."""
        self._widths, self._shown = [], None

    def _back_to_top(self, columns: int, rows: int) -> str:
        """A window that was made narrower has broken the lines that no longer fit."""
        up = min(rows, sum(max(1, -(-width // columns)) for width in self._widths))
        return f"\r\x1b[{up}A" if up else "\r"

    def _styled(self, line: Line) -> str:
        if not self._colour:
            return "".join(piece.text for piece in line)
        return "".join(f"{STYLES[p.style]}{p.text}{PLAIN}" if p.style in STYLES else p.text for p in line)


def _fitted(line: Line, columns: int) -> list[Piece]:
    """The line made printable and cut to `columns`."""
    shown: list[Piece] = []
    for piece in line:
        text = clip(printable(piece.text), columns)
        shown.append(Piece(text, piece.style))
        columns -= display_width(text)
        if columns < 1:
            break
    return shown
