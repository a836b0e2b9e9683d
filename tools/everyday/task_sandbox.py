"""The one place that gives a call its sandbox: one per task, made and started when it is first used."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tools.dispatcher import CallContext, Estimate, ToolError
from tools.sandboxes.base import FileProblem, Sandbox, SandboxConfig, SandboxError

FILE_TOOLS = ("write_file", "patch")
COVERED = ("terminal", "process", *FILE_TOOLS)
"""What may change the same files; who may run commands there may write them too."""


class TaskSandbox:
    """A task's sandbox, for a CallContext: nothing is made before somebody asks for it.

    Whoever makes this owns the task, and calls `stop` at its end.

    Args:
        make: Makes the sandbox, not started; may raise SandboxError.
        config: What it is made from, where that is known.
    """

    def __init__(self, make: Callable[[], Sandbox], config: SandboxConfig | None = None) -> None:
        self._make = make
        self.config = config
        self._starting: asyncio.Task[Sandbox] | None = None
        self._stopped = False

    @classmethod
    def of(cls, config: SandboxConfig | None) -> TaskSandbox:
        """One of this kind; None: the default kind, without network."""
        from tools.sandboxes import kinds

        config = config or SandboxConfig(kinds.DEFAULT)
        return cls(partial(kinds.make, config), config)

    async def get(self) -> Sandbox:
        """The started sandbox. A call that is cancelled meanwhile does not end the start for the others.

        Raises:
            SandboxError: It could not be made or started; says the same at every later call, at once.
        """
        if self._stopped:
            raise SandboxError("the task is over, and its sandbox was stopped")
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="start-sandbox")
        return await asyncio.shield(self._starting)

    async def stop(self) -> None:
        """Ends everything in it and removes it, if there is one. May be called more than once."""
        self._stopped = True
        if self._starting is None:
            return
        self._starting.cancel()
        await asyncio.wait({self._starting})
        if not self._starting.cancelled() and self._starting.exception() is None:
            await self._starting.result().stop()

    async def _start(self) -> Sandbox:
        sandbox = self._make()
        try:
            await sandbox.start()
        except BaseException:  # also when cancelled: whatever was made by then goes
            await sandbox.stop()
            raise
        return sandbox


async def sandbox_of(context: CallContext) -> Sandbox:
    """The started sandbox of the task that a call belongs to.

    Raises:
        ToolError: There is none ("no_sandbox"), or it could not be started ("sandbox").
    """
    given = context.sandbox
    if given is None:
        raise ToolError("no_sandbox", "this needs a sandbox, and the task has none")
    with tool_errors():
        return given if isinstance(given, Sandbox) else await given.get()


def confinement(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What a call in the sandbox, or on files of the host, can change: what its approval is about."""
    config = getattr(context.sandbox, "config", None)
    if context.file_roots:
        folder = str(context.file_roots[0])
    elif config is None or config.workdir is None:
        folder = "the sandbox's own"
    else:
        folder = str(config.workdir)
    network = "with" if config is not None and config.network else "without"
    where = f"in a sandbox ({config.kind}), {network} network" if config is not None else "this computer"
    return Estimate(where=where, scope={"folder": folder})


@contextmanager
def tool_errors() -> Iterator[None]:
    """What a sandbox raises, as a tool's error: "sandbox" where it failed itself, else the file's problem, or
    "invalid_arguments" for what no command can be."""
    try:
        yield
    except SandboxError as error:
        raise ToolError("sandbox", error.message, error.hint) from error
    except FileProblem as error:
        raise ToolError(error.kind, error.message) from error
    except ValueError as error:
        raise ToolError("invalid_arguments", str(error)) from error


def why_none() -> str | None:
    """Why no sandbox can be made on this machine by default; None where one can."""
    from tools.sandboxes import kinds

    try:
        return kinds.usable(kinds.DEFAULT)
    except SandboxError as error:
        return error.message
