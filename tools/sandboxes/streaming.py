"""The one primitive that files and background processes are built on, whatever the kind of sandbox."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType

from tools.sandboxes.base import Sandbox

STDERR_KEPT = 4096
"""Bytes from the end of a script's error output that come back."""
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


class Streaming(Sandbox, ABC):
    """A sandbox that can run a script of ours with bytes flowing both ways."""

    @abstractmethod
    async def _stream(
        self,
        script: str,
        *,
        env: Mapping[str, str] = NO_VARIABLES,
        stdin: AsyncIterator[bytes] | bytes | None = None,
        on_stdout: Callable[[bytes], None] | None = None,
        seconds: float = 600,
    ) -> tuple[int, bytes, bytes]:
        """Runs a script of `sh` in the working folder, in constant memory where both ends are streams.

        Args:
            script: Text for `sh -c`.
            env: Variables on top of the sandbox's: the way to hand over a path of any characters.
            stdin: What it reads. The next piece is asked for when the one before has been taken.
            on_stdout: Given what it writes as it comes; must be quick, the event loop waits for it.
                What it raises ends the script and comes out of here.
            seconds: Its deadline.

        Returns:
            Exit code (128 + n where signal n ended it), stdout (empty where `on_stdout` took it), and the
            last 4 KiB of stderr.

        Raises:
            TimeoutError: It was not over at its deadline; all of it has been ended.
            SandboxGone
        """
