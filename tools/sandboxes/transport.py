"""What carries the three streams of a shell that runs somewhere else."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

CHUNK = 65_536
"""Bytes that are read at once."""
LEAVE_SECONDS = 0.2
"""How long a child may take to end by itself after its command: the other side forgets it, too, then."""


class Transport(Protocol):
    """One shell's streams. Nothing but `close` raises once the other side has gone: it just ends."""

    async def send(self, data: bytes) -> bool:
        """Writes to its standard input; False: nobody reads it any more."""

    async def end_input(self) -> None:
        """Lets it read an end of file."""

    async def read(self, stream: Literal["stdout", "stderr"]) -> bytes:
        """The next bytes of a stream, empty at its end."""

    async def close(self) -> None:
        """Ends the transport, not what it has started on the other side."""


class ProcessTransport:
    """A child process of ours: `docker exec`, `ssh`. It has no terminal that it could ask for a password."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process, self._stdin = process, process.stdin
        self._streams = {"stdout": process.stdout, "stderr": process.stderr}

    @classmethod
    async def start(cls, argv: Sequence[str], cwd: str | Path | None = None) -> ProcessTransport:
        """Raises OSError: the program cannot be started."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd=cwd,
            limit=CHUNK,
        )
        return cls(process)

    async def send(self, data: bytes) -> bool:
        try:
            self._stdin.write(data)
            await self._stdin.drain()
        except (BrokenPipeError, ConnectionResetError):  # a command need not read its input
            return False
        return not self._stdin.is_closing()

    async def end_input(self) -> None:
        if self._stdin.can_write_eof() and not self._stdin.is_closing():
            with contextlib.suppress(OSError):
                self._stdin.write_eof()

    async def read(self, stream: Literal["stdout", "stderr"]) -> bytes:
        return await self._streams[stream].read(CHUNK)

    async def close(self) -> None:
        self._stdin.close()
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                for stream in self._streams.values():
                    while await stream.read(CHUNK):
                        pass
                await self._process.wait()
        except TimeoutError:
            # Kills it and closes its pipes, which others may hold, too: asyncio has no public way to do that.
            self._process._transport.close()  # type: ignore[attr-defined]
            await self._process.wait()
