"""Runs the installed command as a person would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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


def rl_cli(*words: str, cwd: Path | None = None, timeout: float = 600, **environment: str) -> Outcome:
    """The command's exit code and output; no terminal, no standard input."""
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
