"""Keeps the files of a run that only W&B knows up to date while somebody watches it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import is_over

FIRST_SECONDS = 60.0
"""How long the first answer of W&B is waited for."""


@asynccontextmanager
async def kept_up(run: RunDir, to_date: bool = False) -> AsyncIterator[None]:
    """A run of ours writes its own files: nothing is done for it.

    Args:
        run: The run.
        to_date: Wait for W&B's first answer, within bounds, before going on.
    """
    before = run.state()
    if before.get("backend") != "wandb" or is_over(before):
        yield
        return
    from rl_cli.tracking.watcher import watching

    async with watching(run):
        deadline = time.monotonic() + FIRST_SECONDS
        while to_date and time.monotonic() < deadline:
            if run.state().get("heartbeat") != before.get("heartbeat"):
                break
            await asyncio.sleep(0.2)
        yield
