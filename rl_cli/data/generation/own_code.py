"""Calls of a person's own code in the event loop: whatever it raises or blocks, only it fails."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
PRESSES = 2
"""So many Ctrl-C that the event loop did not get to end the code that keeps it from them."""


class OwnCodeFailed(Exception):
    """It blocked the event loop, or ended in a way that would have ended more than itself."""


async def own_code(call: Callable[..., Awaitable[T]], *args: Any, seconds: float) -> T:
    """What the call returns.

    Code that blocks the event loop (`time.sleep`, a request without a limit) is interrupted after so many
    seconds, in the main thread, unless it is in C and looks at no signals.

    Raises:
        OwnCodeFailed: It blocked, or raised what is no Exception: sys.exit(), a cancelled task of its own.
        CancelledError: Whoever called was cancelled.
        Exception: Whatever else it raises.
    """
    try:
        return await _Stepped(partial(call, *args), seconds)
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, asyncio.CancelledError) and is_being_cancelled():
            raise
        raise OwnCodeFailed(f"it raised {type(error).__name__}") from error


def is_being_cancelled() -> bool:
    """Whether somebody asked the current task to end; else a CancelledError comes from within."""
    task = asyncio.current_task()
    return bool(task and task.cancelling())


class _Steps:
    """The steps of own code in this process. Signals are handled in its main thread, where the loop is."""

    running = False
    presses = 0
    """Ctrl-C that the event loop has not got yet."""


def pressed() -> None:
    """For a handler of signals: Ctrl-C was pressed."""
    _Steps.presses += 1
    if _Steps.running and _Steps.presses >= PRESSES:
        raise OwnCodeFailed("a person stopped it")


def heard() -> None:
    """The event loop got what was pressed."""
    _Steps.presses = 0


class _Stepped:
    """An awaitable that runs another one, each of its steps under a timer."""

    def __init__(self, call: Callable[[], Awaitable[Any]], seconds: float) -> None:
        self._call, self._seconds = call, seconds

    def __await__(self) -> Generator[Any, Any, Any]:
        awaited: Any = self._timed(lambda: self._call().__await__())
        step: Callable[[], Any] = partial(next, awaited)
        while True:
            try:
                waits_for = self._timed(step)
            except StopIteration as ended:
                return ended.value
            try:
                step = partial(awaited.send, (yield waits_for))
            except BaseException as error:
                step = partial(awaited.throw, error)

    def _timed(self, step: Callable[[], Any]) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return step()
        if _Steps.presses >= PRESSES:
            raise OwnCodeFailed("a person stopped it")
        earlier = signal.signal(signal.SIGALRM, self._blocks)
        _Steps.running = True
        signal.setitimer(signal.ITIMER_REAL, self._seconds)
        try:
            return step()
        finally:
            _Steps.running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, earlier)

    def _blocks(self, *_: object) -> None:
        if _Steps.running:
            raise OwnCodeFailed(f"it blocked everything else for {self._seconds:g} seconds")
