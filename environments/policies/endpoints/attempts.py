"""The one retry loop of all endpoints: how often, how long in between, what each attempt is billed.

Not retried: what is no Exception (an interrupt, a cancellation), what `classify` does not know, what it calls
final. Every attempt is reserved with the meter before it is sent and ends in exactly one of settle, release
and settle_unknown, whatever happens to it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from environments.policies.base import (
    Bounds,
    DeadlineReached,
    PolicyError,
    Reservation,
    Retrying,
    Throttled,
    Usage,
)

T = TypeVar("T")


@dataclass(frozen=True)
class WaitPolicy:
    """How often a request is made, and the seconds in between."""

    attempts: int = 5
    """The first one included."""
    longest_wait: float = 60.0
    """A server that asks for more is not waited for."""
    base: float = 0.5
    """Before the first repetition, where the server asks for nothing; doubled each time."""
    cap: float = 30.0
    jitter: float = 0.25
    """Share of such a wait that chance takes off, so that clients do not come back together."""

    def backoff(self, repetition: int) -> float:
        """Seconds before repetition 1, 2, ... where the server asks for nothing."""
        full = min(self.cap, self.base * 2.0 ** min(repetition - 1, 30))
        return full * (1 - self.jitter * random.random())


@dataclass(frozen=True)
class Request:
    """What the meter is told of a request before it is sent."""

    model: str
    """`provider/name`."""
    input_tokens: int
    """Estimated."""
    max_output_tokens: int


@dataclass
class Progress:
    """How far an attempt came; whoever sends keeps it up to date."""

    output_tokens: int = 0
    """Estimated, of what was received (or may have been sampled) so far."""


@dataclass(frozen=True)
class Failure:
    """What the exception of an attempt means."""

    error: PolicyError
    """Raised if it is not tried again."""
    retry: bool = False
    wait_seconds: float | None = None
    """As the server asks; None where it does not."""
    billed: bool = False
    """Whether tokens may have been billed."""


async def with_retries(
    send: Callable[[Progress], Awaitable[tuple[T, Usage]]],
    classify: Callable[[Exception], Failure | None],
    request: Request,
    bounds: Bounds,
    wait: WaitPolicy,
    on_retry: Callable[[Retrying], None],
) -> tuple[T, Usage]:
    """Sends until there is an answer.

    Args:
        send: Makes one attempt. Returns the answer and what the endpoint says (or we guess) it used.
        classify: What an exception of `send` means; None for one that is not about the endpoint.
        request: What each attempt is reserved as.
        bounds: The meter and the deadline.
        wait: How often and how long.
        on_retry: Told before each wait.

    Returns:
        The answer and its usage: tokens of this answer, `requests` and `dollars` of all attempts.

    Raises:
        BudgetExhausted: The meter refuses the next attempt.
        DeadlineReached: The next attempt would begin too late.
        PolicyError: The server's refusal, or the last failure where the attempts are used up.
    """
    dollars, attempt = 0.0, 0
    while True:
        attempt += 1
        if bounds.deadline is not None and time.monotonic() >= bounds.deadline:
            raise DeadlineReached("no time is left for the request")
        reservation = _reserve(request, bounds)
        progress = Progress()
        try:
            answer, usage = await send(progress)
        except Exception as error:
            failure = classify(error)
            dollars += _close(reservation, failure, request, progress)
            if failure is None:
                raise
            seconds = _wait_before_next(failure, attempt, bounds, wait, cause=error)
        except BaseException:
            _close(reservation, None, request, progress)
            raise
        else:
            dollars += reservation.settle(usage) if reservation else 0.0
            return answer, replace(usage, requests=attempt, dollars=dollars)
        pause = max(0.0, failure.wait_seconds or 0.0) if isinstance(failure.error, Throttled) else None
        on_retry(Retrying(str(failure.error), seconds, pause))
        await asyncio.sleep(seconds)


def _reserve(request: Request, bounds: Bounds) -> Reservation | None:
    if bounds.meter is None:
        return None
    return bounds.meter.reserve(request.model, request.input_tokens, request.max_output_tokens)


def _close(
    reservation: Reservation | None, failure: Failure | None, request: Request, progress: Progress
) -> float:
    """Ends the reservation of an attempt without an answer. Returns dollars."""
    if reservation is None:
        return 0.0
    if failure is not None and not failure.billed:
        reservation.release()
        return 0.0
    lost = Usage(input_tokens=request.input_tokens, output_tokens=progress.output_tokens, requests=1)
    return reservation.settle_unknown(lost)


def _wait_before_next(
    failure: Failure, attempt: int, bounds: Bounds, wait: WaitPolicy, cause: Exception
) -> float:
    """Seconds until the next attempt; raises where there is none."""
    if not failure.retry:
        raise failure.error from cause
    asked = failure.wait_seconds if failure.wait_seconds and failure.wait_seconds > 0 else None
    if asked is not None and asked > wait.longest_wait:
        later = f"the server asks to wait {as_time(asked)}: go on after that"
        raise PolicyError(f"{failure.error}; {later}") from cause
    if attempt >= wait.attempts:
        tried = f"; tried {attempt} times" if attempt > 1 else ""
        raise type(failure.error)(f"{failure.error}{tried}") from cause
    seconds = asked if asked is not None else wait.backoff(attempt)
    if bounds.deadline is not None and time.monotonic() + seconds >= bounds.deadline:
        raise DeadlineReached(f"no time is left to try again: {failure.error}") from cause
    return seconds


def as_time(seconds: float) -> str:
    """`90` -> `2 min`: rounded up, for a person who waits."""
    if seconds < 60:
        return f"{-int(-seconds // 1)} s"
    if seconds < 3600:
        return f"{-int(-seconds // 60)} min"
    return f"{-int(-seconds // 360) / 10:g} h"
