"""Calls that may never return, in threads: what reads files of a mount that is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
ANSWER_SECONDS = 5.0


class BoundedCalls:
    """Waits a bounded time for each call; one that never returns costs one thread, once."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[Any]] = {}

    @property
    def unanswered(self) -> list[str]:
        """Names of calls that have not returned."""
        return [name for name, task in self._under_way.items() if not task.done()]

    async def answer(self, name: str, call: Callable[[], T], seconds: float = ANSWER_SECONDS) -> T:
        """The result of `call`, or that of an earlier one of this name which came late.

        Raises:
            TimeoutError: It has not returned within `seconds`, or an earlier one of this name has not.
        """
        if name not in self._under_way:
            self._under_way[name] = asyncio.create_task(asyncio.to_thread(call))
        task = self._under_way[name]
        if not (await asyncio.wait([task], timeout=seconds))[0]:
            raise TimeoutError(f"{name} has not answered for {seconds:g} s")
        del self._under_way[name]
        result: T = task.result()
        return result
