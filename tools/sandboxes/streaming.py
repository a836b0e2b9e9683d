"""What commands, files and background processes are built on: one primitive of each kind of sandbox."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType

from tools.sandboxes.base import OUTPUT_LIMIT, CommandResult, Sandbox
from tools.sandboxes.capture import Capture

STDERR_KEPT = 4096
"""Bytes from the end of a script's error output that come back."""
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})

Sink = Callable[[bytes], None]


class Streaming(Sandbox, ABC):
    """A sandbox that can run something with bytes flowing both ways."""

    @abstractmethod
    async def _execute(
        self,
        command: str,
        seconds: float,
        *,
        cwd: str | None,
        env: Mapping[str, str],
        stdin: AsyncIterator[bytes] | bytes | None,
        sinks: tuple[Sink, Sink],
        bash: bool = False,
    ) -> int | None:
        """Runs a command, and returns its exit code; None: it was not over in time, and has been ended.

        Args:
            stdin: What it reads. The next piece is asked for when the one before has been taken.
            sinks: Given its stdout and stderr as they come; must be quick, the event loop waits for them.
                What they raise ends the command and comes out of here.
            bash: Whether bash runs it where the sandbox has it.

        Raises:
            ValueError: No command can be like this.
            SandboxGone
        """

    async def run(
        self,
        command: str,
        seconds: float,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT,
        bash: bool = False,
    ) -> CommandResult:
        out, err = Capture(output_limit), Capture(output_limit)
        began = time.monotonic()
        sinks = (out.feed, err.feed)
        code = await self._execute(
            command, seconds, cwd=cwd, env=env or {}, stdin=stdin, sinks=sinks, bash=bash
        )
        took = time.monotonic() - began
        return CommandResult(code, out.output(), err.output(), took, timed_out=code is None)

    async def _stream(
        self,
        script: str,
        *,
        env: Mapping[str, str] = NO_VARIABLES,
        stdin: AsyncIterator[bytes] | bytes | None = None,
        on_stdout: Sink | None = None,
        seconds: float = 600,
        cwd: str | None = None,
    ) -> tuple[int, bytes, bytes]:
        """Runs a script of ours, in constant memory where both ends are streams.

        Args:
            script: Text for `sh -c`.
            env: Variables on top of the sandbox's: the way to hand over a path of any characters.
            on_stdout: As a sink of `_execute`.
            seconds: Its deadline.
            cwd: Where it begins; None: in the working folder.

        Returns:
            Exit code (128 + n where signal n ended it), stdout (empty where `on_stdout` took it), and the
            last 4 KiB of stderr.

        Raises:
            TimeoutError: It was not over at its deadline; all of it has been ended.
            SandboxGone
        """
        out, err = bytearray(), bytearray()

        def keep_end(data: bytes) -> None:
            err.extend(data)
            del err[:-STDERR_KEPT]

        sinks = (on_stdout or out.extend, keep_end)
        code = await self._execute(script, seconds, cwd=cwd, env=env, stdin=stdin, sinks=sinks)
        if code is None:
            raise TimeoutError(
                f"a script in the {self.kind} sandbox was not over after {seconds:.4g} seconds"
            )
        return code, bytes(out), bytes(err)
