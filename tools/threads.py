"""Threads for sync tools: a bounded pool whose hung threads can be given up.

The standard pool will not do: a hung call keeps its place in it for ever, and the interpreter waits for it at
exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

LIMIT = 64
"""Calls at the same time; more wait for their turn. Those given up do not count."""
IDLE_SECONDS = 10


class _State(Enum):
    WAITING = 1
    RUNNING = 2
    FINISHED = 3
    GIVEN_UP = 4


class _Job:
    def __init__(
        self, function: Callable[[], Any], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        self.function = function
        self.done = done
        self.state = _State.WAITING  # changes under the pool's lock


class ThreadPool:
    """Starts daemon threads as they are needed; they end when they have been idle."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._threads = 0
        self._idle = 0

    async def run(self, function: Callable[[], Any]) -> Any:
        """What `function` returns or raises, from a thread with this task's context variables.

        When the caller is cancelled, a function that has not begun never runs. One that runs is given up: it
        goes on in its thread, nobody waits for it, and another may take its place.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        def done(value: Any, error: BaseException | None) -> None:
            loop.call_soon_threadsafe(settle, value, error)

        context = contextvars.copy_context()
        job = _Job(lambda: context.run(function), done)
        with self._lock:
            self._jobs.append(job)
            self._provide_thread()
        try:
            return await future
        except asyncio.CancelledError:
            self._give_up(job)
            raise

    def _provide_thread(self) -> None:
        if self._idle >= len(self._jobs):
            self._lock.notify()
        elif self._threads < self._limit:
            self._threads += 1
            threading.Thread(target=self._work, daemon=True, name="tool").start()

    def _give_up(self, job: _Job) -> None:
        with self._lock:
            if job.state is _State.RUNNING:
                self._threads -= 1
                if self._jobs:
                    self._provide_thread()
            if job.state is not _State.FINISHED:
                job.state = _State.GIVEN_UP

    def _work(self) -> None:
        while job := self._next():
            value, error = None, None
            try:
                value = job.function()
            except BaseException as raised:  # sys.exit() in a tool must not end the thread unseen
                error = RuntimeError(f"the tool raised {raised!r}") if _unfit(raised) else raised
            with self._lock:
                if job.state is _State.GIVEN_UP:  # this thread no longer counts
                    return
                job.state = _State.FINISHED
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits
                job.done(value, error)

    def _next(self) -> _Job | None:
        with self._lock:
            while True:
                while self._jobs:
                    job = self._jobs.popleft()
                    if job.state is _State.WAITING:
                        job.state = _State.RUNNING
                        return job
                self._idle += 1
                woken = self._lock.wait(IDLE_SECONDS)
                self._idle -= 1
                if not woken and not self._jobs:
                    self._threads -= 1
                    return None


def _unfit(error: BaseException) -> bool:
    """Would it not pass through a future, or end the event loop?"""
    return isinstance(error, StopIteration | SystemExit | KeyboardInterrupt | GeneratorExit)
