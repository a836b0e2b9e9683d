"""Lines to a stream, with one status line below them that is rewritten in place where that is possible."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TextIO

from rl_cli.cli.event_lines import clip
from rl_cli.cli.wrapping import Flow, wrapped
from rl_cli.core.printable import printable

ERASE = "\r\x1b[2K"
UP = "\x1b[A"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Screen:
    """Whatever is written erases the status line first, and it comes back once the cursor starts a line.

    Not safe to use from several threads: one event loop writes.

    Args:
        out: The stream; None is standard output, whatever that is at the moment of writing.
    """

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out
        self.live = self.out.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
        """Whether lines can be rewritten."""
        self._dims = self.live and not os.environ.get("NO_COLOR")
        self._status = ""
        self._drawn = False
        self._below = False
        """The status line may stand below a line that is not complete."""
        self._at_start = True
        self._flow = Flow()
        self._kept: list[tuple[str, bool]] | None = None

    def keep_lines(self) -> None:
        """Somebody is asked something: lines wait until `show_kept`."""
        self._kept = self._kept or []

    def show_kept(self) -> None:
        kept, self._kept = self._kept or [], None
        for text, dim in kept:
            self.line(text, dim)

    @property
    def out(self) -> TextIO:
        return self._out or sys.stdout

    @property
    def at_line_start(self) -> bool:
        return self._at_start

    def write(self, text: str) -> None:
        """Goes on with the current line, on the screen at once: made printable, broken between words."""
        if not text:
            return
        self._erase()
        shown = printable(text)
        self.out.write(self._flow.feed(shown, _columns()) if self.live else shown)
        self._at_start = self._flow.column == 0 if self.live else text.endswith("\n")
        self.out.flush()

    def line(self, text: str, dim: bool = False) -> None:
        """Whole lines, begun on a fresh one."""
        if self._kept is not None:
            self._kept.append((text, dim))
            return
        self._erase()
        start = "" if self._at_start else "\n"
        shown = wrapped(printable(text), _columns()) if self.live else printable(text)
        self._flow.restart()
        self.out.write(f"{start}{DIM}{shown}{PLAIN}\n" if dim and self._dims else f"{start}{shown}\n")
        self._at_start = True
        self._draw()
        self.out.flush()

    def fresh_line(self) -> None:
        if not self._at_start:
            self.write("\n")

    def status(self, text: str, below: bool = False) -> None:
        """What the status line says from now on; empty for none. Ignored where lines cannot be rewritten.

        Args:
            text: One line; what does not fit is cut off.
            below: Show it also below a line that is not complete; else it waits for the end of that.
        """
        if not self.live or (text == self._status and self._drawn == bool(text) and below == self._below):
            return
        self._erase()
        self._status, self._below = text, below
        self._draw()
        self.out.flush()

    def _erase(self) -> None:
        if not self._drawn:
            return
        self._drawn = False
        self.out.write(ERASE)
        if self._at_start:
            return
        if self._flow.column < _columns():
            self.out.write(f"{UP}\x1b[{self._flow.column}C")
        else:  # a full line is not gone on with
            self._flow.restart()
            self._at_start = True

    def _draw(self) -> None:
        if self._status and self.live and (self._at_start or self._below):
            shown = clip(printable(self._status), _columns() - 1)
            self.out.write("" if self._at_start else "\n")
            self.out.write(f"{DIM}{shown}{PLAIN}" if self._dims else shown)
            self._drawn = True


def _columns() -> int:
    return shutil.get_terminal_size().columns
