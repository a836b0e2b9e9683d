"""What a signal means at each moment of a conversation."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from rl_cli.cli.line_reader import LineReader

T = TypeVar("T")


class Interrupts:
    """Takes over the signals of this process; made inside the event loop, by the main task.

    Ctrl-C at the prompt answers that. During a turn the first press sets `event`: a question is not answered,
    a waiting tool returns, or else the turn ends. The second cancels the turn. SIGTERM and SIGHUP cancel the
    main task.
    """

    def __init__(self, lines: LineReader) -> None:
        self.event = asyncio.Event()
        """The `interrupted` of the assistant."""
        self.presses = 0
        """Ctrl-C since the turn began."""
        self.prompt: Callable[[], bool] = lambda: False
        """Tells the chat's prompt of a Ctrl-C; False where it is not shown."""
        self._lines = lines
        self._turn: asyncio.Task[Any] | None = None
        main = asyncio.current_task()
        assert main
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._press)
        for end in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(end, main.cancel)

    async def turn(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Runs a turn; None where a second Ctrl-C cancelled it."""
        self.presses = 0
        self.event.clear()
        self._turn = asyncio.ensure_future(work)
        try:
            return await self._turn
        except asyncio.CancelledError:
            main = asyncio.current_task()
            if self.presses < 2 or (main and main.cancelling()):
                raise
            return None
        finally:
            self._turn = None

    def _press(self) -> None:
        if (self._lines.interrupt() or self.prompt()) and self._turn is None:
            return
        self.presses += 1
        self.event.set()
        if self.presses > 1 and self._turn:
            self._turn.cancel()
