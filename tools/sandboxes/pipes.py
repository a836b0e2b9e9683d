"""The host's ends of a command's pipes, read and written without blocking the event loop."""

from __future__ import annotations

import array
import asyncio
import fcntl
import os
import termios
from collections.abc import AsyncGenerator, AsyncIterator, Callable

READ_AT_ONCE = 256 * 1024
UNREAD_SECONDS = 0.01
"""What a command says in its first moments is read with its end where that comes soon, as it mostly does: the
event loop is not woken for each pipe then."""


class PipeReader:
    """Hands on what comes out of a pipe.

    Args:
        sink: Given each piece; what it raises goes to `failed`, and nothing more is handed on.
    """

    def __init__(self, sink: Callable[[bytes], None], failed: Callable[[Exception], None]) -> None:
        self._sink, self._failed = sink, failed
        self._loop = asyncio.get_running_loop()
        self._pipe, self.other_end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._begin = self._loop.call_later(UNREAD_SECONDS, self._loop.add_reader, self._pipe, self._read)

    def finish(self) -> int | None:
        """Takes what is in the pipe now, and gives the pipe away if it may still be written to."""
        if self._pipe < 0:
            return None
        waiting = array.array("i", [0])
        fcntl.ioctl(self._pipe, termios.FIONREAD, waiting)
        left = waiting[0]
        while left >= 0 and (got := self._read()):  # once more than needed: that finds the end
            left -= got
        pipe, self._pipe = self._pipe, -1
        if pipe < 0:
            return None
        self._stop_reading(pipe)
        return pipe

    def close(self) -> None:
        if self._pipe >= 0:
            self._stop_reading(self._pipe)
            os.close(self._pipe)
            self._pipe = -1

    def _stop_reading(self, pipe: int) -> None:
        self._begin.cancel()
        self._loop.remove_reader(pipe)

    def _read(self) -> int:
        try:
            data = os.read(self._pipe, READ_AT_ONCE)
        except BlockingIOError:
            return 0
        if not data:
            self.close()
            return 0
        try:
            self._sink(data)
        except Exception as error:  # the caller's own: it is told there
            self.close()
            self._failed(error)
        return len(data)


async def write_all(pipe: int, source: AsyncIterator[bytes] | bytes) -> None:
    """Writes until the source ends or nobody reads any more, then closes the pipe.

    Raises:
        Exception: What the source raises.
    """
    os.set_blocking(pipe, False)
    try:
        if isinstance(source, bytes):
            await _write(pipe, source)
        else:
            async for piece in source:
                await _write(pipe, piece)
    except BrokenPipeError:  # commands need not read what they are given
        pass
    finally:
        os.close(pipe)
        if isinstance(source, AsyncGenerator):
            await source.aclose()


async def _write(pipe: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(pipe, left) :]
        except BlockingIOError:
            writable: asyncio.Future[None] = loop.create_future()
            loop.add_writer(pipe, writable.set_result, None)
            try:
                await writable
            finally:
                loop.remove_writer(pipe)
