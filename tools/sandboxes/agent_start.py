"""Starts agents on this machine: as a program of their own, or as forks of a process that is ready."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tools.sandboxes.agent import protocol

FOLDER = Path(__file__).parent
PACKAGE = "agent"
"""Of what an agent consists, in FOLDER."""
START_SECONDS = 30.0


def python_words(module: str, folder: str) -> list[str]:
    """What follows the name of a Python that is to run a module of the agent's.

    Args:
        folder: Where the package lies, as the new process sees it.
    """
    run = f"import sys; sys.path.insert(0, {folder!r}); from {PACKAGE}.{module} import main; main()"
    return ["-I", "-S", "-c", run]


async def spawn(
    argv: Sequence[str], descriptors: Sequence[int], link: socket.socket, errors: int
) -> subprocess.Popen[bytes]:
    """Starts a program with a link as its standard input and nothing of our environment.

    Args:
        descriptors: What it inherits, with the same numbers; closed here.
    """
    try:
        return await asyncio.to_thread(_popen, argv, descriptors, link.fileno(), errors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


async def fork(link: socket.socket, errors: int) -> None:
    """Has an agent forked that takes a link over.

    Raises:
        OSError: The process that forks them cannot be started.
    """
    if not _nursery.take(link):
        await asyncio.to_thread(_nursery.begin, errors)
        if not _nursery.take(link):
            raise OSError("the process that runs commands has ended at once")


def forks_agents() -> object:
    """The process that does so now; None: there is none."""
    return _nursery.process()


class _Nursery:
    """This process's own, begun when it is first needed; a new one where it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def take(self, link: socket.socket) -> bool:
        """Hands a link over; False: there is nobody who would take it."""
        if self._control is None or self._process is None or self._owner != os.getpid():
            return False
        self._process.send_signal(signal.SIGCONT)  # a command may have stopped it
        try:
            socket.send_fds(self._control, [b"\0"], [link.fileno()])
        except OSError:  # it has ended, or does not come to take any more of them
            return False
        return True

    def begin(self, errors: int) -> None:
        """Blocks until it is there.

        Raises:
            OSError
        """
        with self._lock:
            if self.process() is not None:
                return
            self.end()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                words = [sys.executable, *python_words("nursery", str(FOLDER))]
                self._process = _popen(words, (), theirs.fileno(), errors)
            ours.settimeout(START_SECONDS)
            self._control, self._owner = ours, os.getpid()
            if not ours.recv(protocol.LONGEST_MESSAGE):
                raise OSError("the process that runs commands did not start")
            ours.setblocking(False)

    def end(self) -> None:
        """Blocks until it has ended, with all agents."""
        if self._control is not None:
            self._control.close()
            self._control = None
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            with suppress(subprocess.TimeoutExpired):
                process.wait(START_SECONDS)
                return
            process.kill()
            process.wait()

    def process(self) -> subprocess.Popen[bytes] | None:
        """None: it is not there, or another process's."""
        mine = self._owner == os.getpid() and self._control is not None
        alive = mine and self._process is not None and self._process.poll() is None
        return self._process if alive else None


_nursery = _Nursery()
atexit.register(_nursery.end)


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
