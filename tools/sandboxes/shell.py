"""Sandboxes that are reached through a shell: a transport of its own carries each command's streams."""

from __future__ import annotations

import asyncio
import secrets
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, ClassVar, NoReturn

from tools.sandboxes.background import BackgroundProcesses
from tools.sandboxes.base import (
    BASE_ENVIRONMENT,
    SandboxConfig,
    SandboxError,
    SandboxGone,
    check_command,
)
from tools.sandboxes.bash import for_bash
from tools.sandboxes.conversation import Conversation
from tools.sandboxes.files import Files
from tools.sandboxes.streaming import Sink
from tools.sandboxes.transport import Transport
from tools.sandboxes.trees import kill_script
from tools.sandboxes.wrapper import COMMAND_VARIABLE, WRAPPER_VARIABLE, wrapped

KILL_WAIT = 1.5
"""Seconds past its deadline in which a command's processes are ended before its result is returned."""
PROBE_SECONDS = 20.0
"""After which one that says nothing is lost: a busy machine takes its time."""
CLEANUP_SECONDS = 20.0
SIGKILL_CODE = 137


class ShellSandbox(Files, BackgroundProcesses):
    """A kind says how it is made and removed, and how a shell in it is opened.

    Attributes:
        unbounded: Which fields of the wanted resources are not bounded, once it has started.
    """

    _options: ClassVar[tuple[str, ...]] = ()
    """Names that `options` may have."""
    _parallel: ClassVar[int] = 64
    """Commands that run at the same time; more wait for their turn, within their deadlines."""
    _ends_alone: ClassVar[bool] = False
    """See `wrapped`."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.unbounded: tuple[str, ...] = ()
        self.workdir = "/workspace"
        self._id = f"rl-cli-{secrets.token_hex(8)}"
        self.private = f"/tmp/.{self._id}"
        self._turns = asyncio.Semaphore(self._parallel)
        self._control = asyncio.Lock()
        self._later: set[asyncio.Task[Any]] = set()
        self._environment = dict(BASE_ENVIRONMENT)
        del self._environment["PATH"]  # the far side knows best where its programs are
        self._gone: str | None = f"{self.kind}: this sandbox was not started"

    @abstractmethod
    async def _open(self, script: str) -> Transport:
        """A transport to `/bin/sh -c SCRIPT` in the sandbox, without a terminal.

        Raises:
            OSError, SandboxError: There is no way to get there.
        """

    @abstractmethod
    async def _make(self) -> None:
        """Raises SandboxError."""

    @abstractmethod
    async def _remove(self) -> None:
        """Ends and removes what `_make` has made, however far it came."""

    async def start(self) -> None:
        if unknown := sorted(set(self.config.options) - set(self._options)):
            known = f"known: {', '.join(self._options)}" if self._options else "it has none"
            raise SandboxError(f"{self.kind}: there is no option {unknown[0]}", known)
        try:
            check_command("", None, self.config.env)
        except ValueError as error:
            raise SandboxError(f"{self.kind}: {error}") from None
        try:
            await self._make()
            self._gone = None
            folders = 'mkdir -p -- "$WORK" "$PRIVATE" && chmod 700 "$PRIVATE"'
            script = f"{folders} && [ -r /proc/self/environ ] && grep -q . /proc/self/environ"
            variables = {"WORK": self.workdir, "PRIVATE": self.private}
            code, _, err = await self._stream(script, env=variables, cwd="/", seconds=60)
            if code:
                reason = err.decode(errors="replace").strip() or "it has no /proc, or no grep"
                raise SandboxError(f"{self.kind}: the sandbox cannot be set up: {reason}")
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError | OSError):
                raise SandboxError(f"{self.kind}: the sandbox could not be started: {error}") from error
            raise

    async def stop(self) -> None:
        self._gone = f"{self.kind}: this sandbox was stopped"
        await asyncio.shield(self._remove())
        if self._later:
            await asyncio.wait(self._later, timeout=CLEANUP_SECONDS)
        for task in self._later:
            task.cancel()

    async def alive(self) -> bool:
        return self._gone is None and await self._unreachable() is None

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
        self._check()
        id, mark = f"{self._id}.{secrets.token_hex(8)}", secrets.token_hex(16)
        where = self.workdir if cwd is None else cwd if cwd.startswith("/") else f"{self.workdir}/{cwd}"
        script = wrapped(
            for_bash(command) if bash else command,
            mark,
            cwd=where,
            env={**self._environment, **self.config.env, **env, COMMAND_VARIABLE: id},
            has_stdin=stdin is not None,
            scratch=f"{self.private}/{id}",
            ends_alone=self._ends_alone,
            id=id,
        )
        ends = time.monotonic() + seconds
        try:
            async with asyncio.timeout(seconds):
                await self._turns.acquire()
        except TimeoutError:
            return None
        try:
            self._check()
            async with asyncio.timeout(ends - time.monotonic()):
                conversation = await Conversation.begin(self._open, script, id, mark, stdin, sinks)
        except BaseException as error:
            self._turns.release()
            if isinstance(error, TimeoutError):
                return None
            if isinstance(error, OSError | SandboxError) and not isinstance(error, SandboxGone):
                self._lose(str(error))
            raise
        try:
            return await self._ending(conversation, id, ends)
        finally:
            self._afterwards(self._close(conversation))

    async def _close(self, conversation: Conversation) -> None:
        """The next may have its turn when the other side, too, has forgotten this one."""
        try:
            await conversation.close()
        finally:
            self._turns.release()

    async def _ending(self, conversation: Conversation, id: str, ends: float) -> int | None:
        try:
            async with asyncio.timeout(ends - time.monotonic()):
                code = await conversation.ending()
        except TimeoutError:
            killing = self._afterwards(self._kill(id))
            await asyncio.wait([killing], timeout=KILL_WAIT)
            await conversation.rest()
            return None
        except BaseException:
            self._afterwards(self._kill(id))
            raise
        if code is None:
            self._check()  # stopped meanwhile, or another command has found out
            reason = await self._unreachable()
            if reason is not None and await self._make_room():
                reason = await self._unreachable()
            if reason is not None:
                self._lose(reason)
            return SIGKILL_CODE  # the sandbox is there: whoever would have written the mark was killed
        return code

    async def _kill(self, id: str) -> None:
        """Ends a command's tree; a sandbox in which that cannot be done is lost."""
        try:
            async with asyncio.timeout(CLEANUP_SECONDS):
                reason = await self._shell(kill_script(COMMAND_VARIABLE, id, WRAPPER_VARIABLE))
        except TimeoutError:
            reason = "it does not answer any more"
        if reason is not None and self._gone is None and not await self._make_room():
            self._gone = self._gone or self._lost_message(reason)

    async def _make_room(self) -> bool:
        """Ends all that runs in it, where that can be done though nothing can be started there any more.

        Returns:
            Whether it was done.
        """
        return False

    async def _unreachable(self) -> str | None:
        """Why no command could be run now."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return await self._shell(":")
        except TimeoutError:
            return "it does not answer any more"

    async def _shell(self, script: str) -> str | None:
        """Runs a script of ours, past those that wait for their turn; why it could not be run, or None."""
        async with self._control:
            return await self._shell_alone(script)

    async def _shell_alone(self, script: str) -> str | None:
        mark = secrets.token_hex(16)
        whole = wrapped(script, mark, cwd="/", env={}, has_stdin=False, ends_alone=self._ends_alone)
        sinks = (bytearray().extend, bytearray().extend)
        try:
            conversation = await Conversation.begin(self._open, whole, "ours", mark, None, sinks)
        except (OSError, SandboxError) as error:
            return str(error)
        try:
            if await conversation.ending() is None:
                return conversation.last_words() or "its connection ended"
            return None
        finally:
            await conversation.close()

    def _afterwards(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._later.add(task)
        task.add_done_callback(self._later.discard)
        return task

    def _check(self) -> None:
        if self._gone is not None:
            raise SandboxGone(self._gone)

    def _lost_message(self, reason: str) -> str:
        return f"{self.kind}: the sandbox is gone: {' '.join(reason.split())}"

    def _lose(self, reason: str) -> NoReturn:
        self._gone = self._gone or self._lost_message(reason)
        raise SandboxGone(self._gone)
