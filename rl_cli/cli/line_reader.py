"""Lines from standard input, read without a thread, so that whoever waits for one can be interrupted."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TextIO

CHUNK = 65_536


class LineInterrupted(Exception):
    """Ctrl-C came instead of a line."""


class LineReader:
    """Reads a terminal in its ordinary line mode, a pipe, or a file."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._ended = descriptor == 0 and sys.stdin is None
        self._waiting: asyncio.Future[None] | None = None

    async def line(self) -> str | None:
        """The next line without its end; None where the input has ended.

        Raises:
            LineInterrupted: `interrupt` was called while we waited.
        """
        while b"\n" not in self._buffer and not self._ended:
            await self._until_ready()
            piece = os.read(self._descriptor, CHUNK)
            # Ctrl-D ends one line of a terminal, not the terminal.
            self._ended = not piece and not os.isatty(self._descriptor)
            if not piece and not self._ended:
                return None
            self._buffer += piece
        line, newline, self._buffer = self._buffer.partition(b"\n")
        return line.decode("utf-8", "replace").rstrip("\r") if line or newline else None

    def interrupt(self) -> bool:
        """Ends the wait for a line; False where nobody waits."""
        if self._waiting is None or self._waiting.done():
            return False
        self._buffer = b""
        self._waiting.set_exception(LineInterrupted())
        return True

    def forget_typed(self) -> None:
        """Drops what was typed and not read, so that it cannot answer a question nobody had seen."""
        self._buffer = b""
        if os.isatty(self._descriptor):
            import termios

            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    async def _until_ready(self) -> None:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(self._descriptor, _done, waiting)
        except PermissionError:  # a regular file is always ready
            return
        self._waiting = waiting
        try:
            await waiting
        finally:
            self._waiting = None
            loop.remove_reader(self._descriptor)


def is_terminal(*streams: TextIO | None) -> bool:
    """All of them are; a stream that was closed before we began (None) is not."""
    return all(stream is not None and stream.isatty() for stream in streams)


def _done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
