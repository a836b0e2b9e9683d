"""A command on a terminal of its own: what is typed, and what a person sees."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path
from types import TracebackType

from tests.e2e.forked import Forked

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[=>()][A-Z0-9]?")
ROWS, COLUMNS = 40, 120
WHERE = b"\x1b[6n"
"""The question where the cursor is, which terminals answer."""
CTRL_C, CTRL_D, ENTER, ESCAPE_ENTER, UP = "\x03", "\x04", "\r", "\x1b\r", "\x1b[A"


class Terminal:
    """Runs `rl-cli WORDS` on a pseudo-terminal; `seen` is its output without escape sequences."""

    def __init__(self, *words: str, cwd: Path | None = None, **environment: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color"} | environment
        self.process = Forked(list(words), [theirs] * 3, cwd, environment, terminal=True)
        os.close(theirs)
        self._bytes = b""
        self._position = 0

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        os.close(self._ours)

    @property
    def seen(self) -> str:
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    @property
    def raw(self) -> str:
        """Everything that came, escape sequences too."""
        return self._bytes.decode("utf-8", "replace")

    def hang_up(self) -> None:
        """Closes the window."""
        os.close(self._ours)
        self._ours = os.open(os.devnull, os.O_RDONLY)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def say(self, line: str) -> None:
        self.type(line + ENTER)

    def expect(self, text: str, timeout: float = 90) -> str:
        """Waits until `text` appears after what was expected before; returns what came before it."""
        end = time.monotonic() + timeout
        while (found := self.seen.find(text, self._position)) < 0:
            if not self._read(end):
                raise AssertionError(f"{text!r} did not appear in:\n{self.seen[self._position :]}")
        before = self.seen[self._position : found]
        self._position = found + len(text)
        return before

    def code(self, timeout: float = 90) -> int:
        """The exit code, once the command has ended."""
        end = time.monotonic() + timeout
        while self._read(end):
            pass
        return self.process.wait(max(1.0, end - time.monotonic()))

    def _read(self, end: float) -> bool:
        """Reads what there is; False at the end of the output or of the time."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            piece = os.read(self._ours, 65_536)
        except OSError:  # Linux: nobody has the other side any more
            return False
        self._bytes += piece
        for _ in range(piece.count(WHERE)):
            os.write(self._ours, b"\x1b[%d;1R" % ROWS)
        return bool(piece)
