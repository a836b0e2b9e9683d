"""What the sandboxes of one event loop do one after the other, so that the loop gets to everything else."""

from __future__ import annotations

import asyncio
import os
from weakref import WeakKeyDictionary

LAUNCHES_IN_A_ROW = 2
"""Commands that are started before the event loop turns to something else."""


class Turns:
    """Of one event loop.

    Attributes:
        starts_and_stops: Held by a sandbox that starts or stops. That is work for a CPU: more of them at the
            same time than there are CPUs would be no faster.
    """

    def __init__(self) -> None:
        self.starts_and_stops = asyncio.Semaphore(os.cpu_count() or 1)
        self._launches = asyncio.Semaphore(LAUNCHES_IN_A_ROW)

    async def to_launch(self) -> None:
        """Waits until a command may be started."""
        await self._launches.acquire()
        asyncio.get_running_loop().call_soon(self._launches.release)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Turns] = WeakKeyDictionary()


def turns() -> Turns:
    """The running event loop's."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loops:
        _of_loops[loop] = Turns()
    return _of_loops[loop]
