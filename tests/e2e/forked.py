"""Starts the command as forks of one process that has its modules: see fork_server.py."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

PLAIN = ("PATH", "HOME", "PYTHONPATH", "OMP_NUM_THREADS")


class Forked:
    """A command that runs, with what tests use of subprocess.Popen.

    Args:
        words: Its arguments.
        streams: Three open files: its input, output and errors.
        cwd: Its folder.
        environment: The whole of it.
        terminal: The first stream is a terminal that it is to take, in a session of its own.
    """

    def __init__(
        self,
        words: list[str],
        streams: list[int],
        cwd: Path | None,
        environment: dict[str, str],
        terminal: bool = False,
    ) -> None:
        call = {
            "words": words,
            "environment": environment,
            "cwd": str(cwd or Path.cwd()),
            "terminal": terminal,
        }
        request = json.dumps(call).encode()
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_server())
        socket.send_fds(self._connection, [len(request).to_bytes(8, "big")], streams)
        self._connection.sendall(request)
        self._news = b""
        self.args = words
        self.pid = self._next()
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._connection.settimeout(timeout)
            try:
                self.returncode = self._next()
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._connection.close()
        return self.returncode

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0.001)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _next(self) -> int:
        """The next number that comes: its pid, then its exit code."""
        while b"\n" not in self._news:
            piece = self._connection.recv(100)
            assert piece, "the process that is forked has ended"
            self._news += piece
        line, _, self._news = self._news.partition(b"\n")
        return int(line)


@cache
def _server() -> str:
    """The socket of the process that is forked; it ends after this one."""
    folder = TemporaryDirectory(prefix="forks-")
    atexit.register(folder.cleanup)
    path = f"{folder.name}/socket"
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.e2e.fork_server", path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={name: os.environ[name] for name in PLAIN if name in os.environ},
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    return path
