"""Short calls of programs that manage sandboxes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path


async def call(argv: Sequence[str], seconds: float, cwd: Path | None = None) -> tuple[int, str, str]:
    """Runs a program without input.

    Returns:
        Exit code (-1: it did not end in time, or could not be started), stdout, stderr.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd=cwd,
        )
    except OSError as error:
        return -1, "", str(error)
    try:
        async with asyncio.timeout(seconds):
            out, errors = await process.communicate()
    except TimeoutError:
        return -1, "", f"no answer within {seconds:g} s"
    finally:
        if process.returncode is None:
            # Kills it and closes its pipes, which others may hold, too: asyncio has no public way to do that.
            process._transport.close()  # type: ignore[attr-defined]
            await process.wait()
    return process.returncode or 0, out.decode(errors="replace"), errors.decode(errors="replace")


def last_line(error: str) -> str:
    """The line of an error that says why; docker's advice after it only tells where to read on."""
    lines = [line.strip() for line in error.splitlines() if line.strip() and not line.startswith("Run '")]
    return lines[-1] if lines else "it gave no reason"
