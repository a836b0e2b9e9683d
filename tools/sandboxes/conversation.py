"""One command over one transport: its script and input go in, its output comes out, up to the mark."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

from tools.sandboxes.transport import CHUNK, Transport
from tools.sandboxes.wrapper import UntilMark, reader

REST_SECONDS = 0.3
"""How long the last output of a command that was killed may take to come through."""
CLOSE_SECONDS = 5.0
LAST_WORDS = 500


class Conversation:
    """Takes and gives bytes until the command is over."""

    def __init__(
        self, transport: Transport, mark: str, sinks: tuple[Callable[[bytes], None], Callable[[bytes], None]]
    ) -> None:
        self._transport = transport
        self._tail = b""
        self._out, self._err = UntilMark(mark, sinks[0]), UntilMark(mark, sinks[1])
        self._feeding: asyncio.Task[None] | None = None
        self._pumps = [
            asyncio.create_task(self._pump("stdout", self._out)),
            asyncio.create_task(self._pump("stderr", self._err)),
        ]

    @classmethod
    async def begin(
        cls,
        open_shell: Callable[[str], Awaitable[Transport]],
        script: bytes,
        id: str,
        mark: str,
        stdin: AsyncIterator[bytes] | bytes | None,
        sinks: tuple[Callable[[bytes], None], Callable[[bytes], None]],
    ) -> Conversation:
        """Raises what opening the shell does."""
        conversation = cls(await open_shell(reader(script, id)), mark, sinks)
        conversation._feeding = asyncio.create_task(conversation._feed(script, stdin))
        return conversation

    async def ending(self) -> int | None:
        """Waits for the end, and returns the exit code; None: the transport ended without the mark.

        Raises:
            What a sink or the input raised.
        """
        assert self._feeding
        waiting = {*self._pumps, self._feeding}
        while waiting & set(self._pumps):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        return self._out.exit_code if self._out.exit_code is not None else self._err.exit_code

    async def rest(self) -> None:
        """Takes what was still under way when the command was killed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REST_SECONDS):
                await self.ending()
        self._out.end()
        self._err.end()

    def last_words(self) -> str:
        """The end of the error output: of a transport that broke, the reason."""
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    async def close(self) -> None:
        """Never raises; takes a few seconds at most."""
        tasks = [*self._pumps, *([self._feeding] if self._feeding else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._transport.close()

    async def _feed(self, script: bytes, stdin: AsyncIterator[bytes] | bytes | None) -> None:
        try:
            if not await self._transport.send(script):
                return
            if isinstance(stdin, bytes):
                for start in range(0, len(stdin), CHUNK):
                    if not await self._transport.send(stdin[start : start + CHUNK]):
                        return
            elif stdin is not None:
                async for piece in stdin:
                    if not await self._transport.send(piece):
                        return
        finally:
            await self._transport.end_input()

    async def _pump(self, name: Literal["stdout", "stderr"], stream: UntilMark) -> None:
        while stream.exit_code is None:
            data = await self._transport.read(name)
            if not data:
                stream.end()
                return
            if name == "stderr":
                self._tail = (self._tail + data)[-LAST_WORDS:]
            stream.feed(data)
            await asyncio.sleep(0)  # a command that never stops writing lets others have their turn
