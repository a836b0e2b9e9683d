"""Lines through the person's pager, or straight to the terminal where there is none."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress


def paged(lines: Iterable[str]) -> None:
    """Shows lines as they come; ends when the pager is left. Needs a terminal on standard output."""
    command = shlex.split(os.environ.get("PAGER") or "less")
    if not command or not shutil.which(command[0]):
        for line in lines:
            print(line)
        return
    # What fits on the screen is not paged, colours pass, the screen stays.
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8", **os.environ}
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, text=True, encoding="utf-8")
    assert pager.stdin
    try:
        with suppress(BrokenPipeError), pager.stdin:  # it was left before the end
            for line in lines:
                pager.stdin.write(line + "\n")
    finally:
        sys.stdout.flush()
        while True:
            with suppress(KeyboardInterrupt):  # Ctrl-C is the pager's
                pager.wait()
                break
