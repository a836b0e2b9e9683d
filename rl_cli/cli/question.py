"""A question to the person at the terminal, in the middle of a turn."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence

from rl_cli.cli.display import Display
from rl_cli.cli.line_reader import LineInterrupted, LineReader, is_terminal
from rl_cli.cli.terminal_mode import terminal_mode
from rl_cli.cli.wrapping import wrapped
from rl_cli.core.printable import printable


class Questions:
    """Ctrl-D and the end of the input give "", which is a no. So does Ctrl-C, which also ends the turn.

    What was typed before a question was on the screen does not answer it.

    Args:
        display: Makes room.
        lines: Where the answer comes from.
        interrupted: Set: there is nothing to ask any more.
    """

    def __init__(self, display: Display, lines: LineReader, interrupted: asyncio.Event) -> None:
        self._display = display
        self._lines = lines
        self._interrupted = interrupted
        self.on_wait: Callable[[], None] = lambda: None
        """The wait for the person begins."""
        self.on_answer: Callable[[], None] = lambda: None
        """It is over, however it ended."""

    async def ask(self, question: str, choices: Sequence[str]) -> str:
        """Returns what was typed.

        Args:
            question: Several lines, shown as they are.
            choices: Keys to name behind it.
        """
        if self._interrupted.is_set():
            return ""
        self._display.pause_to_ask()
        self.on_wait()
        try:
            with terminal_mode("lines"):
                self._lines.forget_typed()
                asked = wrapped(printable(f"\n{question} [{'/'.join(choices)}]"), _columns())
                print(f"{asked} ", end="", file=sys.stderr, flush=True)
                answer = await self._lines.line()
        except LineInterrupted:
            answer = None
        finally:
            self.on_answer()
            self._display.resume()
        if answer is None:
            print(file=sys.stderr, flush=True)
        return answer or ""


def _columns() -> int:
    return shutil.get_terminal_size().columns - 1


def can_ask() -> bool:
    """There is a person: standard input is a terminal, and so is standard error."""
    return is_terminal(sys.stdin, sys.stderr)
