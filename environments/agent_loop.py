"""The one loop of chat, batches and RL: ask the policy, run its tool calls, hand it the results.

Not here: streaming, approvals, persistence and compaction (they come in through the context, `on_event` and
`before_request`), retries, and anything else that would change what the policy sees.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import Any, TypeVar

from tools.dispatcher import CallContext, handle_function_call, tool_specs

from environments.policies.base import FinishReason, PolicyError, Session, TokenRecord, Usage
from rl_cli.core.messages import Message, ToolCall, tool_result

T = TypeVar("T")

INTERRUPT_GRACE = 2.0
"""Seconds a tool may take to end by itself once the person interrupts; then it is cancelled."""


class StopReason(StrEnum):
    FINISHED = "finished"
    """The policy answered without a tool call."""
    MAX_TURNS = "max_turns"
    TOKEN_LIMIT = "token_limit"
    DEADLINE = "deadline"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    ERROR = "error"
    """The policy could not answer; `LoopResult.error` says why."""


@dataclass(frozen=True)
class Limits:
    max_turns: int = 50
    """Completions; the tool calls of the last one are still run."""
    max_tokens: int | None = None
    """Sampled tokens of the whole run, looked at before each request."""
    deadline: float | None = None
    """On the clock of time.monotonic()."""


@dataclass(frozen=True)
class CallRecord:
    id: str
    name: str
    arguments: str
    result: str
    """JSON text, as the policy was given it."""
    ok: bool
    seconds: float
    turn: int
    """From 0."""
    error_type: str | None = None
    """`error.type` of a failed result."""


@dataclass(frozen=True)
class TurnStarted:
    turn: int


@dataclass(frozen=True)
class AssistantMessage:
    message: Message


@dataclass(frozen=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True)
class ToolFinished:
    record: CallRecord


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
    call_errors: list[str] = field(default_factory=list)
    """Tool calls that could not be read from the policy's text."""

    @property
    def final_text(self) -> str:
        """The text of the last assistant message; empty where there is none."""
        said = (m["content"] for m in reversed(self.messages) if m["role"] == "assistant")
        return next(said, "") or ""


BeforeRequest = Callable[[list[Message]], Awaitable[StopReason | None]]
"""Sees the messages so far; a reason that it returns ends the run before the request."""


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
            is the stop reason ERROR.
    """
    limits = limits or Limits()
    if limits.deadline is not None:
        context = replace(context, deadline=min(limits.deadline, context.deadline or limits.deadline))
    emit = on_event or (lambda event: None)
    result = LoopResult(list(messages))
    new = list(messages)
    for turn in range(limits.max_turns):
        stop = _stop_due(context, limits, result.usage)
        if stop is None and before_request is not None:
            stop = await before_request(result.messages)
        if stop is not None:
            result.stop = stop
            return result
        emit(TurnStarted(turn))
        try:
            completion = await _complete(session.complete(new), context)
        except PolicyError as error:
            result.stop, result.error = StopReason.ERROR, str(error)
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
            result.stop = StopReason.FINISHED
        else:
            records = await _run_calls(calls, context, turn, emit)
            result.calls += records
            new = [tool_result(call, record.result) for call, record in zip(calls, records, strict=True)]
            result.messages += new
            continue
        # Every call is answered, whatever happened, so that the conversation stays well formed.
        result.messages += [tool_result(call, _failure("not_run", "the reply was cut off")) for call in calls]
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
    done = await _first(request, context.interrupted, seconds)
    if done is not None:
        return done.result()
    interrupted = context.interrupted is not None and context.interrupted.is_set()
    return StopReason.INTERRUPTED if interrupted else StopReason.DEADLINE


async def _run_calls(
    calls: list[ToolCall], context: CallContext, turn: int, emit: Callable[[LoopEvent], None]
) -> list[CallRecord]:
    """One record per call, in call order. Calls run together; an exclusive tool runs alone."""
    specs = tool_specs(context.toolsets)
    records: list[CallRecord] = []

    def alone(call: ToolCall) -> bool:
        spec = specs.get(call["function"]["name"])
        return spec is not None and spec.exclusive

    for exclusive, run_of_calls in groupby(calls, key=alone):
        together = list(run_of_calls)
        for part in [[call] for call in together] if exclusive else [together]:
            records += await asyncio.gather(*(_run_call(call, context, turn, emit) for call in part))
    return records


async def _run_call(
    call: ToolCall, context: CallContext, turn: int, emit: Callable[[LoopEvent], None]
) -> CallRecord:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    emit(ToolStarted(call))
    started = time.monotonic()
    if context.interrupted is None:
        text = await handle_function_call(name, arguments, context)
    elif context.interrupted.is_set():
        text = _failure("interrupted", "not run: the person interrupted")
    else:
        work = handle_function_call(name, arguments, context)
        done = await _first(work, context.interrupted, None, grace=INTERRUPT_GRACE)
        text = done.result() if done else _failure("interrupted", "ended: the person interrupted")
    error = (
        None
        if (parsed := json.loads(text)).get("ok")
        else str(parsed.get("error", {}).get("type", "unknown"))
    )
    record = CallRecord(
        call["id"], name, arguments, text, error is None, time.monotonic() - started, turn, error
    )
    emit(ToolFinished(record))
    return record


async def _first(
    work: Coroutine[Any, Any, T], event: asyncio.Event | None, seconds: float | None, grace: float = 0.0
) -> asyncio.Task[T] | None:
    """The finished task of `work`; None, with it cancelled, if the event or the time-out came first."""
    task = asyncio.ensure_future(work)
    watch = None if event is None else asyncio.ensure_future(event.wait())
    racers: set[asyncio.Task[Any]] = {task} if watch is None else {task, watch}
    try:
        await asyncio.wait(racers, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not task.done() and grace and event is not None and event.is_set():
            await asyncio.wait({task}, timeout=grace)
        return task if task.done() else None
    finally:
        for racer in racers:
            racer.cancel()
        await asyncio.gather(*racers, return_exceptions=True)


def _failure(kind: str, message: str) -> str:
    return json.dumps({"ok": False, "error": {"type": kind, "message": message}})
