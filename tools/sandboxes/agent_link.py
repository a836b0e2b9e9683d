"""The host's side of an agent: starts it, sends it requests, hears how commands ended."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

from tools.sandboxes.agent import protocol
from tools.sandboxes.agent_channel import Channel, close_all
from tools.sandboxes.base import SandboxError, SandboxGone
from tools.sandboxes.idle_agent import IdleAgent

START_SECONDS = 30.0
END_SECONDS = 5.0
"""How long an agent may take to end all that runs, before it is killed."""

Launch = Callable[[socket.socket, int], Awaitable["subprocess.Popen[bytes] | None"]]
"""Starts an agent, given its end of the link and a descriptor for its error output; closes neither. Returns
its process; None: the agent says itself which one it is. Raises OSError."""


class AgentLink:
    """One agent, for one task. Used by one event loop.

    Args:
        kind: The sandbox's, for messages.

    Attributes:
        gone: Why nothing can be asked any more.
        clean: Whether the agent has said, last of all, that nothing of the task runs any more.
        left_nothing: And that it has taken away what the task had on this machine.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._loop = asyncio.get_running_loop()
        self._channel: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pidfd: int | None = None
        self._starting: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._last_id = 0
        self.gone: str | None = None
        self.clean = self.left_nothing = False

    async def start(self, launch: Launch, settings: Mapping[str, Any], groups: list[int]) -> None:
        """Starts the agent, and has it set up the place of commands.

        Args:
            settings: As `agent.place.set_up` takes them.
            groups: Descriptors of the control groups that commands enter; closed here.

        Raises:
            SandboxError: It did not come up: what its standard error says; or the place cannot be made so.
        """
        errors, errors_end = os.pipe()
        try:
            self._starting = asyncio.create_task(self._start(launch, errors_end, settings, groups))
            await asyncio.shield(self._starting)
        except OSError as error:
            raise SandboxError(f"{self._kind} did not start: {error}") from None
        except SandboxGone:
            raise SandboxError(f"{self._kind} did not start: {_last_line(errors)}") from None
        except TimeoutError:
            raise SandboxError(f"{self._kind} did not start in {START_SECONDS:.0f} seconds") from None
        finally:
            os.close(errors)

    async def _start(
        self, launch: Launch, errors: int, settings: Mapping[str, Any], groups: list[int]
    ) -> None:
        """Not cancelled with its caller: whatever was started is known here, and ended."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            try:
                self._process = await launch(theirs, errors)
            except OSError:
                ours.close()
                close_all(groups)
                raise
            finally:
                os.close(errors)
        self._channel = Channel(ours, self._hear, self._lost)
        if self._process is not None:
            self._pidfd = os.pidfd_open(self._process.pid)
            self._loop.add_reader(self._pidfd, self._reap)
        self._channel.send(protocol.SETUP, 0, groups, settings)
        async with asyncio.timeout(START_SECONDS):
            await asyncio.shield(self._ready)

    def resume(self, agent: IdleAgent) -> None:
        """Takes one that waits for a task, instead of a start."""
        self._pidfd = agent.pidfd
        self._channel = Channel(agent.end, self._hear, self._lost)
        self._ready.set_result(None)

    def run(self, request: Mapping[str, Any], pipes: list[int]) -> tuple[int, asyncio.Future[int]]:
        """Starts a command.

        Args:
            request: Its command, cwd and env.
            pipes: Descriptors for its stdin, if it has one, stdout and stderr; closed here.

        Returns:
            An id for it, and what will be its exit code, or SandboxGone.
        """
        self._last_id += 1
        exit_code: asyncio.Future[int] = self._loop.create_future()
        self._exits[self._last_id] = exit_code
        self._send(protocol.RUN, self._last_id, pipes, request)
        return self._last_id, exit_code

    def end(self, id: int) -> None:
        """Ends a command with all that it started; its exit code then comes as it would otherwise."""
        self._signal(signal.SIGCONT)  # in local, a command may have stopped it
        self._send(protocol.END, id, [])

    def forget(self, id: int) -> None:
        """Nobody waits for the exit code any more."""
        self._exits.pop(id, None)

    def drop(self, pipe: int) -> None:
        """Has whatever is still written to a pipe read and forgotten; the descriptor is closed here."""
        self._send(protocol.DROP, 0, [pipe])

    def break_off(self, why: str) -> None:
        """Tells everybody who waits, and whoever asks later, that nothing can be asked. Ends the agent."""
        if self._channel is not None:
            self._channel.end_sending()
        self._say_gone(why)

    def _say_gone(self, why: str) -> None:
        if self.gone is not None:
            return
        self.gone = why
        everybody: list[asyncio.Future[Any]] = [self._ready, *self._exits.values()]
        for waiting in everybody:
            if not waiting.done():
                waiting.set_exception(SandboxGone(why))
                waiting.exception()  # somebody may wait or not
        self._exits.clear()

    def give_up(self, why: str) -> None:
        """Ends an agent that does not do what it is asked."""
        self.break_off(why)
        self._signal(signal.SIGKILL)

    async def leave(self, body: Mapping[str, Any]) -> IdleAgent | None:
        """Has the agent end all that runs and wait for another task.

        Args:
            body: As `agent.leaving.take_away` takes it, besides what came with the set-up.

        Returns:
            None: it cannot have another task, and `close` is what comes next.
        """
        await self._started()
        ready = self._ready.done() and self._ready.exception() is None
        if self._channel is None or self._channel.waits or self.gone is not None or not ready:
            return None
        self._signal(signal.SIGCONT)
        self._channel.send(protocol.LEAVE, 0, [], body)
        self._say_gone(self._stopped())
        await asyncio.wait({self._ended}, timeout=END_SECONDS)
        if not self._ended.done():
            self._signal(signal.SIGKILL)
        if not self.clean or self._channel is None or self._pidfd is None:
            return None
        agent = IdleAgent(self._channel.release(), self._pidfd)
        self._channel = self._pidfd = None
        return agent

    async def close(self) -> None:
        """Ends the agent with all that runs below it, and waits for that."""
        await self._started()
        self.break_off(self._stopped())
        if self._pidfd is not None:
            self._signal(signal.SIGCONT)
            await asyncio.wait({self._ended}, timeout=END_SECONDS)
            if not self._ended.done():
                self._signal(signal.SIGKILL)
                await self._ended
        self._hang_up()

    async def _started(self) -> None:
        if self._starting is not None:
            await asyncio.wait({self._starting})
            if not self._starting.cancelled():
                self._starting.exception()  # its caller may have been cancelled

    def _stopped(self) -> str:
        return f"the {self._kind} sandbox was stopped"

    def _signal(self, number: int) -> None:
        if self._pidfd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _send(
        self, what: int, id: int, descriptors: list[int], body: Mapping[str, Any] | None = None
    ) -> None:
        if self.gone is not None or self._channel is None:
            close_all(descriptors)
            return
        self._channel.send(what, id, descriptors, body)

    def _hear(self) -> None:
        while self._channel is not None and (packet := self._channel.receive()) is not None:
            data, descriptor = packet
            what, id, value = protocol.HEAD.unpack_from(data) if data else (protocol.CLEAN, 0, 0)
            self._pidfd = descriptor or self._pidfd
            if what == protocol.CLEAN:
                self.clean, self.left_nothing = bool(data), bool(value)
                if id:
                    self._ended.set_result(None)
                    return
                self._hang_up()
                if self._process is None:
                    self._is_over()
                self._lost()
                return
            if self.gone is not None:
                continue
            if what == protocol.ENDED:
                exit_code = self._exits.pop(id, None)
                if exit_code is not None and not exit_code.done():
                    exit_code.set_result(value)
            elif what == protocol.READY:
                self._ready.set_result(None)
            elif what == protocol.FAILED:
                text = data[protocol.HEAD.size :].decode(errors="replace")
                self._ready.set_exception(SandboxError(f"{self._kind} could not be set up: {text}"))

    def _hang_up(self) -> None:
        if self._channel is not None:
            self._channel.release().close()
            self._channel = None

    def _lost(self) -> None:
        self.break_off(f"the {self._kind} sandbox is gone: the process that runs its commands has ended")

    def _reap(self) -> None:
        assert self._pidfd is not None
        assert self._process is not None
        self._loop.remove_reader(self._pidfd)
        self._process.wait()  # it has ended
        self._is_over()
        self._lost()

    def _is_over(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if not self._ended.done():
            self._ended.set_result(None)


def _last_line(descriptor: int) -> str:
    os.set_blocking(descriptor, False)
    try:
        lines = os.read(descriptor, 65536).decode(errors="replace").strip().splitlines()
    except BlockingIOError:
        lines = []
    return lines[-1] if lines else "it said nothing"
