"""A question at the terminal: printed to stderr, one line read from stdin."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
from collections.abc import Sequence


async def ask_on_terminal(
    question: str, choices: Sequence[str], interrupted: asyncio.Event | None = None
) -> str:
    """What the person typed; "" at the end of the input or when `interrupted` is set.

    What was typed before the question was on the screen does not answer it.
    """
    terminal = sys.stdin.fileno()
    termios.tcflush(terminal, termios.TCIFLUSH)
    print(f"{question} [{'/'.join(choices)}] ", end="", file=sys.stderr, flush=True)
    # Not in a thread: one that still waits for input when the command is interrupted cannot be ended.
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(terminal, ready.set)
    waits = [asyncio.ensure_future(event.wait()) for event in (ready, interrupted) if event]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        loop.remove_reader(terminal)
        for wait in waits:
            wait.cancel()
    if not ready.is_set():
        print(file=sys.stderr)
        return ""
    return os.read(terminal, 4096).decode(errors="replace")
