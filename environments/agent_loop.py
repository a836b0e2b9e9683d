"""The one loop of chat, batches and RL: ask the policy, run its tool calls, hand it the results.

Not here: streaming, approvals, persistence and compaction (they come in through the context, `on_event` and
`before_request`), retries, and anything else that would change what the policy sees.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from environments.policies.base import (
    BudgetExhausted,
    ContextOverflow,
    DeadlineReached,
    FinishReason,
    PolicyError,
    Session,
    TokenRecord,
    Usage,
)
from environments.tool_calls import CallRecord, ToolFinished, ToolStarted, failure, first_of, run_calls
from rl_cli.core.messages import Message, tool_result
from tools.dispatcher import CallContext

__all__ = [
    "AssistantMessage",
    "BeforeRequest",
    "CallRecord",
    "Limits",
    "LoopEvent",
    "LoopResult",
    "Stop",
    "StopReason",
    "ToolFinished",
    "ToolStarted",
    "TurnStarted",
    "run",
    "unsent",
]

T = TypeVar("T")


class StopReason(StrEnum):
    FINISHED = "finished"
    """The policy answered without a tool call."""
    MAX_TURNS = "max_turns"
    TOKEN_LIMIT = "token_limit"
    DEADLINE = "deadline"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    DECLINED = "declined"
    """The policy answered that it did not do what it was asked to do."""
    OVERFLOW = "overflow"
    """The conversation does not fit the model's window."""
    STUCK = "stuck"
    """Going on would lead nowhere: the same failure again and again, empty replies."""
    ERROR = "error"
    """The policy could not answer."""


@dataclass(frozen=True)
class Limits:
    max_turns: int = 50
    """Completions; the tool calls of the last one are still run."""
    max_tokens: int | None = None
    """Sampled tokens of the whole run, looked at before each request."""
    deadline: float | None = None
    """On the clock of time.monotonic()."""


@dataclass(frozen=True)
class TurnStarted:
    turn: int


@dataclass(frozen=True)
class AssistantMessage:
    message: Message


LoopEvent = TurnStarted | AssistantMessage | ToolStarted | ToolFinished


@dataclass
class LoopResult:
    messages: list[Message]
    """The messages given to run(), and all that followed."""
    stop: StopReason = StopReason.MAX_TURNS
    usage: Usage = field(default_factory=Usage)
    calls: list[CallRecord] = field(default_factory=list)
    tokens: TokenRecord | None = None
    error: str | None = None
    """Why it stopped, in one line, where the stop reason alone does not say it."""
    call_errors: list[str] = field(default_factory=list)
    """Tool calls that could not be read from the policy's text."""

    @property
    def final_text(self) -> str:
        """The text of the last assistant message; empty where there is none."""
        said = (m["content"] for m in reversed(self.messages) if m["role"] == "assistant")
        return next(said, "") or ""


@dataclass(frozen=True)
class Stop:
    """Why a run ends here."""

    reason: StopReason
    why: str | None = None
    """One line for a person."""


BeforeRequest = Callable[[list[Message]], Awaitable[Stop | None]]
"""Sees the messages so far; a Stop that it returns ends the run before the request."""

STOP_OF_ERROR: tuple[tuple[type[PolicyError], StopReason], ...] = (
    (ContextOverflow, StopReason.OVERFLOW),
    (BudgetExhausted, StopReason.BUDGET),
    (DeadlineReached, StopReason.DEADLINE),
)


async def run(
    session: Session,
    messages: list[Message],
    context: CallContext,
    limits: Limits | None = None,
    on_event: Callable[[LoopEvent], None] | None = None,
    before_request: BeforeRequest | None = None,
) -> LoopResult:
    """Runs one agent until it stops.

    Args:
        messages: What the session has not been given yet. To go on after a stop, begin with `unsent()`.
        context: Bounds what may be called; its `interrupted` event ends the run.

    Raises:
        Exception: whatever `on_event`, `before_request` or a bug raises. A PolicyError does not propagate: it
            is the stop reason ERROR, or the one that its kind stands for.
    """
    limits = limits or Limits()
    if limits.deadline is not None:
        context = replace(context, deadline=min(limits.deadline, context.deadline or limits.deadline))
    emit = on_event or (lambda event: None)
    result = LoopResult(list(messages))
    new = list(messages)
    for turn in range(limits.max_turns):
        due = _stop_due(context, limits, result.usage)
        stop = Stop(due) if due else None
        if stop is None and before_request is not None:
            stop = await before_request(result.messages)
        if stop is not None:
            result.stop, result.error = stop.reason, stop.why
            return result
        emit(TurnStarted(turn))
        try:
            completion = await _complete(session.complete(new), context)
        except PolicyError as error:
            kinds = (stop for kind, stop in STOP_OF_ERROR if isinstance(error, kind))
            result.stop, result.error = next(kinds, StopReason.ERROR), str(error)
            return result
        if isinstance(completion, StopReason):
            result.stop = completion
            return result
        message = completion.message
        result.messages.append(message)
        result.usage += completion.usage
        result.tokens = completion.tokens
        result.call_errors += completion.call_errors
        emit(AssistantMessage(message))
        calls = message.get("tool_calls", [])
        if completion.finish_reason is FinishReason.LENGTH:
            result.stop = StopReason.TOKEN_LIMIT
        elif completion.finish_reason is FinishReason.CONTENT_FILTER:
            result.stop, result.error = StopReason.ERROR, "the provider's content filter stopped the reply"
        elif not calls:
            declined = completion.finish_reason is FinishReason.DECLINED
            result.stop = StopReason.DECLINED if declined else StopReason.FINISHED
        else:
            records = await run_calls(calls, context, turn, emit)
            result.calls += records
            new = [tool_result(call, record.result) for call, record in zip(calls, records, strict=True)]
            result.messages += new
            continue
        # Every call is answered, whatever happened, so that the conversation stays well formed.
        result.messages += [tool_result(call, failure("not_run", "the reply was cut off")) for call in calls]
        return result
    return result


def unsent(messages: list[Message]) -> list[Message]:
    """The messages after the last assistant message: those that a stopped session has not taken in."""
    last = max((i for i, m in enumerate(messages) if m["role"] == "assistant"), default=-1)
    return messages[last + 1 :]


def _stop_due(context: CallContext, limits: Limits, usage: Usage) -> StopReason | None:
    if context.interrupted is not None and context.interrupted.is_set():
        return StopReason.INTERRUPTED
    if context.deadline is not None and time.monotonic() >= context.deadline:
        return StopReason.DEADLINE
    if limits.max_tokens is not None and usage.output_tokens >= limits.max_tokens:
        return StopReason.TOKEN_LIMIT
    return None


async def _complete(request: Coroutine[Any, Any, T], context: CallContext) -> T | StopReason:
    """The answer; or DEADLINE or INTERRUPTED, with the request cancelled."""
    if context.deadline is None and context.interrupted is None:
        return await request
    seconds = None if context.deadline is None else max(0.0, context.deadline - time.monotonic())
    if context.interrupted is None:
        bound = asyncio.timeout(seconds)
        try:
            async with bound:
                return await request
        except TimeoutError:
            if not bound.expired():
                raise
            return StopReason.DEADLINE
    done = await first_of(request, context.interrupted, seconds)
    if done is not None:
        return done.result()
    return StopReason.INTERRUPTED if context.interrupted.is_set() else StopReason.DEADLINE
