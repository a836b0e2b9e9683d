"""Ctrl-C on a compression: the first lets the requests under way come to their end, the second ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from rl_cli.data.generation.stopping import Stopping


async def interruptible(
    work: Callable[[asyncio.Event], Awaitable[dict[str, Any]]], on_first: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """What `work` returns, which is given what the first Ctrl-C (or SIGTERM) sets.

    Raises:
        KeyboardInterrupt: At the second.
    """
    stopping, main = Stopping(), asyncio.current_task()
    assert main
    stopping.on_first = on_first
    stopping.listen()
    ending = asyncio.create_task(_cancel_once(stopping, main))
    try:
        return await work(stopping.asked)
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        ending.cancel()


async def _cancel_once(stopping: Stopping, main: asyncio.Task[Any]) -> None:
    await stopping.now.wait()
    main.cancel()
