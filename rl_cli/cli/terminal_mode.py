"""What a terminal does with what is typed while nobody reads it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Literal

from rl_cli.cli.line_reader import is_terminal

Mode = Literal["lines", "silent", "keys"]


@contextlib.contextmanager
def terminal_mode(mode: Mode) -> Iterator[None]:
    """Changes the mode for a while; nothing where standard input is no terminal. Ctrl-C works in all of them.

    Args:
        mode: "lines": what is typed is shown and edited line by line. "silent": the same, not shown, since it
            would mix with what is printed. "keys": each key is kept as it is for the prompt that comes next.
    """
    if not is_terminal(sys.stdin):
        yield
        return
    import termios

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    changed = [*before[:6], list(before[6])]
    if mode == "silent":
        changed[3] &= ~termios.ECHO
        changed[3] |= (
            termios.NOFLSH
        )  # Ctrl-C ends the turn, and does not drop what was typed for the next one
    elif mode == "lines":
        changed[0] |= termios.ICRNL
        changed[3] |= termios.ECHO | termios.ICANON
        changed[3] &= ~termios.NOFLSH
        changed[6][termios.VEOF], changed[6][termios.VEOL] = b"\x04", b"\x00"
    else:
        changed[0] &= ~termios.ICRNL
        changed[3] &= ~(termios.ECHO | termios.ICANON)
        changed[6][termios.VMIN], changed[6][termios.VTIME] = 1, 0  # on some systems VEOF and VEOL
    termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
