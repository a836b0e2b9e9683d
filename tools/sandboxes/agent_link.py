"""The host's side of an agent: starts it, sends it requests, hears how commands ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from tools.sandboxes import agent
from tools.sandboxes.base import SandboxError, SandboxGone

START_SECONDS = 30.0
END_SECONDS = 5.0
"""How long an agent may take to end all that runs, before it is killed."""


class AgentLink:
    """One agent. Used by one event loop.

    Args:
        kind: The sandbox's, for messages.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._loop = asyncio.get_running_loop()
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._ended = self._loop.create_future()
        self._greeting: asyncio.Future[None] = self._loop.create_future()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._exits: dict[int, asyncio.Future[int]] = {}
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self._last_id = 0
        self.gone: str | None = None
        """Why nothing can be asked any more."""

    async def start(self, argv: Sequence[str], descriptors: Sequence[int] = ()) -> None:
        """Starts the agent.

        Args:
            argv: The program that runs it; gets nothing of our environment.
            descriptors: What it inherits, with the same numbers; closed here.

        Raises:
            SandboxError: It did not come up: what its standard error says.
        """
        errors, errors_end = os.pipe()
        try:
            self._starting = asyncio.create_task(self._spawn(argv, descriptors, errors_end))
            await asyncio.shield(self._starting)
            await asyncio.wait_for(asyncio.shield(self._greeting), START_SECONDS)
        except OSError as error:
            raise SandboxError(f"{self._kind} did not start: {error}") from None
        except SandboxGone:
            raise SandboxError(f"{self._kind} did not start: {_last_line(errors)}") from None
        except TimeoutError:
            raise SandboxError(f"{self._kind} did not start in {START_SECONDS:.0f} seconds") from None
        finally:
            os.close(errors)

    async def _spawn(self, argv: Sequence[str], descriptors: Sequence[int], errors: int) -> None:
        """In a thread, and not cancelled with its caller: whatever was started is known here, and ended."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            try:
                self._process = await asyncio.to_thread(_popen, argv, descriptors, theirs.fileno(), errors)
            except OSError:
                ours.close()
                raise
            finally:
                _close([errors, *descriptors])
        self._socket = ours
        self._loop.add_reader(ours, self._hear)
        pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(pidfd, self._reap, pidfd)

    async def set_up(self, settings: Mapping[str, Any], groups: list[int]) -> None:
        """Sets up the place of commands.

        Args:
            groups: Descriptors of the control groups that they enter; closed here.

        Raises:
            SandboxError: It cannot be made so.
        """
        self._send(agent.SETUP, 0, [body_of(settings), *groups])
        await asyncio.wait_for(asyncio.shield(self._ready), START_SECONDS)

    def run(self, request: Mapping[str, Any], pipes: list[int]) -> tuple[int, asyncio.Future[int]]:
        """Starts a command.

        Args:
            request: Its command, cwd and env.
            pipes: Descriptors for its stdin, stdout and stderr; closed here.

        Returns:
            An id for it, and what will be its exit code, or SandboxGone.
        """
        self._last_id += 1
        exit_code: asyncio.Future[int] = self._loop.create_future()
        self._exits[self._last_id] = exit_code
        self._send(agent.RUN, self._last_id, [body_of(request), *pipes])
        return self._last_id, exit_code

    def end(self, id: int) -> None:
        """Ends a command with all that it started; its exit code then comes as it would otherwise."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)  # in local, a command may have stopped it
        self._send(agent.END, id, [])

    def forget(self, id: int) -> None:
        """Nobody waits for the exit code any more."""
        self._exits.pop(id, None)

    def drop(self, pipe: int) -> None:
        """Has whatever is still written to a pipe read and forgotten; the descriptor is closed here."""
        self._send(agent.DROP, 0, [pipe])

    def break_off(self, why: str) -> None:
        """Tells everybody who waits, and whoever asks later, that nothing can be asked. Ends the agent."""
        if self.gone is not None:
            return
        self.gone = why
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
        for _, descriptors in self._unsent:
            _close(descriptors)
        self._unsent.clear()
        everybody: list[asyncio.Future[Any]] = [self._greeting, self._ready, *self._exits.values()]
        for waiting in everybody:
            if not waiting.done():
                waiting.set_exception(SandboxGone(why))
                waiting.exception()  # somebody may wait or not
        self._exits.clear()

    def give_up(self, why: str) -> None:
        """Ends an agent that does not do what it is asked."""
        self.break_off(why)
        if self._process is not None:
            self._process.kill()

    async def close(self) -> None:
        """Ends the agent with all that runs below it, and waits for that."""
        if self._starting is not None:
            await asyncio.wait({self._starting})
        self.break_off(f"the {self._kind} sandbox was stopped")
        if self._process is None:
            return
        try:
            await asyncio.wait_for(asyncio.shield(self._ended), END_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._ended

    def _send(self, what: int, id: int, descriptors: list[int]) -> None:
        if self.gone is not None:
            _close(descriptors)
            return
        self._unsent.append((agent.HEAD.pack(what, id, 0), descriptors))
        if len(self._unsent) == 1:
            self._send_waiting()

    def _send_waiting(self) -> None:
        assert self._socket is not None
        while self._unsent:
            packet, descriptors = self._unsent[0]
            try:
                socket.send_fds(self._socket, [packet], descriptors)
            except BlockingIOError:
                self._loop.add_writer(self._socket, self._send_waiting)
                return
            except OSError:  # the agent has ended
                self._lost()
                return
            self._unsent.popleft()
            _close(descriptors)
        self._loop.remove_writer(self._socket)

    def _hear(self) -> None:
        assert self._socket is not None
        while self.gone is None:
            try:
                data = self._socket.recv(agent.LONGEST_MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._lost()
                return
            what, id, value = agent.HEAD.unpack_from(data)
            if what == agent.ENDED:
                exit_code = self._exits.pop(id, None)
                if exit_code is not None and not exit_code.done():
                    exit_code.set_result(value)
            elif what == agent.HELLO:
                self._greeting.set_result(None)
            elif what == agent.READY:
                self._ready.set_result(None)
            elif what == agent.FAILED:
                text = data[agent.HEAD.size :].decode(errors="replace")
                self._ready.set_exception(SandboxError(f"{self._kind} could not be set up: {text}"))

    def _lost(self) -> None:
        self.break_off(f"the {self._kind} sandbox is gone: the process that runs its commands has ended")

    def _reap(self, pidfd: int) -> None:
        assert self._process is not None
        self._loop.remove_reader(pidfd)
        os.close(pidfd)
        self._process.wait()  # it has ended
        self._ended.set_result(None)
        self._lost()


def _popen(
    argv: Sequence[str], descriptors: Sequence[int], stdin: int, output: int
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(argv),
        stdin=stdin,
        stdout=output,
        stderr=output,
        env={},
        cwd="/",
        pass_fds=descriptors,
        start_new_session=True,  # Ctrl-C at the terminal is for us, not for it
    )


def body_of(content: Mapping[str, Any]) -> int:
    """A descriptor of a file in memory with the JSON of what a packet would be too short for."""
    descriptor = os.memfd_create("body")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(json.dumps(content).encode())
    return descriptor


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _last_line(descriptor: int) -> str:
    os.set_blocking(descriptor, False)
    try:
        lines = os.read(descriptor, 65536).decode(errors="replace").strip().splitlines()
    except BlockingIOError:
        lines = []
    return lines[-1] if lines else "it said nothing"
