"""The policy of a batch: its requests wait for their turn, a provider that only fails is given up."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from environments.policies.base import (
    Bounds,
    BudgetExhausted,
    Completion,
    ContextOverflow,
    DeadlineReached,
    Delta,
    FinishReason,
    OnDelta,
    Policy,
    PolicyError,
    Retrying,
    Sampling,
    Session,
)
from environments.policies.endpoints.errors import Refusal
from rl_cli.core.messages import Message
from rl_cli.data.generation.limiter import RequestLimit

ROUNDS = 3
"""How often a request is made by the policy, which makes several attempts each time: the conversation before
it is paid for, and would be lost with it."""


@dataclass
class ProviderHealth:
    """What the last requests tell of the provider.

    Attributes:
        give_up_after: Failures in a row, of all conversations, after which the provider counts as down.
        streak: Failures since the last answer.
        last_error: What the last failure said.
        failed_at: When, on the clock of time.monotonic().
    """

    give_up_after: int
    streak: int = 0
    last_error: str = ""
    failed_at: float = float("-inf")

    @property
    def is_down(self) -> bool:
        return self.streak >= self.give_up_after

    def answered(self, sent_at: float) -> None:
        """A request was answered; one that was sent before the last failure tells nothing of now."""
        if sent_at >= self.failed_at:
            self.streak = 0

    def failed(self, error: Exception) -> None:
        self.streak, self.last_error, self.failed_at = self.streak + 1, str(error), time.monotonic()


class BatchPolicy:
    """A policy whose sessions wait for their turn, and stop asking once the provider is down."""

    def __init__(self, policy: Policy, limit: RequestLimit, health: ProviderHealth) -> None:
        self.name = policy.name
        self.policy, self.limit, self.health = policy, limit, health
        self.on_trouble: Callable[[str], None] = lambda error: None
        """Told why a request has failed, also one that is made again, and "" when one is answered."""
        self.on_heard: Callable[[], None] = lambda: None
        """Told whenever a policy streams something, or has answered."""

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AsyncIterator[BatchSession]:
        session = BatchSession(self, on_delta)
        async with self.policy.open(rollout_id, tools, sampling, session.hear, bounds) as inner:
            session.inner = inner
            yield session


class BatchSession:
    """One conversation."""

    inner: Session

    def __init__(self, policy: BatchPolicy, on_delta: OnDelta | None) -> None:
        self._limit, self._health, self._on_delta = policy.limit, policy.health, on_delta
        self._on_heard, self._on_trouble = policy.on_heard, policy.on_trouble
        self._sent_at = 0.0
        self.attempts = 0
        """How often the last request was sent."""
        self.finish: FinishReason | None = None
        """Of the last answer."""

    async def complete(self, new_messages: list[Message]) -> Completion:
        """Raises PolicyError once it has failed in all its rounds, or the provider is down."""
        self.attempts = 0
        for round_ in range(1, ROUNDS + 1):
            if self._health.is_down:
                raise PolicyError(self._health.last_error)
            try:
                async with self._limit.request():
                    self._sent_at = time.monotonic()
                    self.attempts += 1
                    completion = await self.inner.complete(new_messages)
            except (ContextOverflow, BudgetExhausted, DeadlineReached):
                raise
            except PolicyError as error:
                self._health.failed(error)
                self._on_trouble(str(error))
                if round_ == ROUNDS or isinstance(error, Refusal):
                    raise
            else:
                self._limit.answered()
                self._health.answered(self._sent_at)
                self._on_heard()
                self._on_trouble("")
                self.finish = completion.finish_reason
                return completion
        raise AssertionError("the last round returns or raises")

    def hear(self, delta: Delta) -> None:
        """What the policy streams of the answer, and of its attempts."""
        self._on_heard()
        if isinstance(delta, Retrying):
            self.attempts += 1
            self._on_trouble(delta.reason)
            if delta.pause is not None:
                self._limit.throttled(self._sent_at, delta.pause)
            self._sent_at = time.monotonic() + delta.wait_seconds
        if self._on_delta:
            self._on_delta(delta)
