"""Runs the command as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from tests.e2e.forked import Forked


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    def rows(self) -> list[dict[str, Any]]:
        """stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines() if line.strip()]


def command(*words: str) -> list[str]:
    return [str(Path(sys.executable).parent / "rl-cli"), *words]


def installed(*words: str, cwd: Path | None = None, timeout: float = 600, **environment: str) -> Outcome:
    """The installed command's exit code and output; no terminal, no standard input."""
    done = subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd=cwd,
        timeout=timeout,
        env=os.environ | environment,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def rl_cli(*words: str, cwd: Path | None = None, timeout: float = 600, **environment: str) -> Outcome:
    """As `installed`, in a process that has loaded its modules already: a tenth of the time.

    What decides how Python starts is an installed command's to show.
    """
    if any(name.startswith(("PYTHON", "LC_", "LANG")) for name in environment):
        return installed(*words, cwd=cwd, timeout=timeout, **environment)
    with open(os.devnull, "rb") as nothing:
        return _forked(words, nothing, None, cwd, timeout, environment)


def piped(given: bytes, *words: str, cwd: Path | None = None, timeout: float = 600) -> Outcome:
    """As `rl_cli`, with `given` as its standard input, and its output as it was written."""
    with TemporaryFile() as file:
        file.write(given)
        file.seek(0)
        return _forked(words, file, "", cwd, timeout, {})


def _forked(
    words: tuple[str, ...],
    given: IO[bytes],
    newline: str | None,
    cwd: Path | None,
    timeout: float,
    environment: dict[str, str],
) -> Outcome:
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    with (
        os.fdopen(out, encoding="utf-8", newline=newline) as told,
        os.fdopen(err, encoding="utf-8", newline=newline) as said,
        ThreadPoolExecutor(2) as pool,
    ):
        streams = [given.fileno(), out_end, err_end]
        running = Forked(list(words), streams, cwd, os.environ | environment)
        os.close(out_end)
        os.close(err_end)
        texts = [pool.submit(told.read), pool.submit(said.read)]
        try:
            return Outcome(running.wait(timeout), *(text.result(60) for text in texts))
        finally:
            running.kill()
