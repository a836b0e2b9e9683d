"""Ctrl-C on a batch: the first lets what is in flight come to its end, the second ends it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from rl_cli.data.generation import own_code

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopping:
    """Whether a person wants the batch to stop.

    Attributes:
        asked: Nothing new is begun.
        now: What is in flight is ended.
    """

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.now = asyncio.Event()
        self.on_first: Callable[[], None] = lambda: None

    def listen(self) -> None:
        """Takes over SIGNALS of this process; call it inside of the event loop.

        A hang-up stays ignored where it was: `nohup` asks for that.
        """
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                loop.add_signal_handler(number, self.press)
                signal.signal(number, lambda *_: own_code.pressed())  # beside it: the loop may be blocked

    def press(self) -> None:
        """As Ctrl-C does."""
        own_code.heard()
        if self.asked.is_set():
            self.now.set()
        else:
            self.asked.set()
            self.on_first()
