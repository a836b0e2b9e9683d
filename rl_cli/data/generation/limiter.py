"""How many requests of a batch go out at once: as many as the endpoint bears."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

LONGEST_PAUSE = 60.0
"""Seconds; an endpoint that asks for a longer one is asked again after this."""


class RequestLimit:
    """Additive increase, multiplicative decrease, as in TCP (Chiu and Jain 1989), up to `most`.

    Each answer lets a share of a further request out, so that one more goes out a round. A request that is
    throttled halves the limit, unless it was sent before that was last halved: it then tells nothing new.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._allowed = float(most)
        self._busy = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._halved_at = float("-inf")
        self._paused_until = float("-inf")

    @property
    def allowed(self) -> int:
        """Requests that may go out at once now; at least 1."""
        return int(self._allowed)

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Waits for a turn, and holds it."""
        while (pause := self._paused_until - time.monotonic()) > 0 or self._busy >= self.allowed:
            if pause > 0:
                await asyncio.sleep(pause)
            else:
                await self._turn()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._wake()

    def answered(self) -> None:
        """A request was answered."""
        self._allowed = min(float(self.most), self._allowed + 1 / self._allowed)
        self._wake()

    def throttled(self, sent_at: float, pause: float) -> None:
        """A request was refused because there are too many of them.

        Args:
            sent_at: When it was sent, on the clock of time.monotonic().
            pause: Seconds before which no other is sent.
        """
        now = time.monotonic()
        self._paused_until = max(self._paused_until, now + min(pause, LONGEST_PAUSE))
        if sent_at > self._halved_at:
            self._allowed, self._halved_at = max(1.0, self._allowed / 2), now

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._wake()  # somebody else's now
            raise

    def _wake(self) -> None:
        free = self.allowed - self._busy
        while free > 0 and self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
