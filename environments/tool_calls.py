"""The tool calls of one turn: which run together, and what becomes of them when the person interrupts."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeVar

from rl_cli.core.messages import ToolCall
from tools.dispatcher import (
    ApprovalRequest,
    CallContext,
    ToolError,
    Verdict,
    handle_function_call,
    tool_specs,
)

T = TypeVar("T")

INTERRUPT_GRACE = 2.0
"""Seconds a tool may take to end by itself once the person interrupts; then it is cancelled."""


@dataclass(frozen=True)
class CallRecord:
    id: str
    name: str
    arguments: str
    result: str
    """JSON text, as the policy was given it."""
    ok: bool
    seconds: float
    """Without the wait for an approval."""
    turn: int
    """From 0."""
    error_type: str | None = None
    """`error.type` of a failed result."""


@dataclass(frozen=True)
class ToolStarted:
    call: ToolCall


@dataclass(frozen=True)
class ToolFinished:
    record: CallRecord


async def run_calls(
    calls: list[ToolCall], context: CallContext, turn: int, emit: Callable[[ToolStarted | ToolFinished], None]
) -> list[CallRecord]:
    """One record per call, in call order. Calls run together; an exclusive tool runs alone."""
    specs = tool_specs(context.toolsets)
    records: list[CallRecord] = []

    def alone(call: ToolCall) -> bool:
        spec = specs.get(call["function"]["name"])
        return spec is not None and spec.exclusive

    for exclusive, run_of_calls in groupby(calls, key=alone):
        together = list(run_of_calls)
        if exclusive or len(together) == 1:
            for call in together:
                records.append(await _run_call(call, context, turn, emit))
        else:
            records += await asyncio.gather(*(_run_call(call, context, turn, emit) for call in together))
    return records


async def _run_call(
    call: ToolCall, context: CallContext, turn: int, emit: Callable[[ToolStarted | ToolFinished], None]
) -> CallRecord:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    emit(ToolStarted(call))
    context, waited = _with_timed_approval(context)
    started = time.monotonic()
    if context.interrupted is None:
        text = await handle_function_call(name, arguments, context)
    elif context.interrupted.is_set():
        text = failure("interrupted", "not run: the person interrupted")
    else:
        work = handle_function_call(name, arguments, context)
        done = await first_of(work, context.interrupted, None, grace=INTERRUPT_GRACE)
        text = done.result() if done else failure("interrupted", "ended: the person interrupted")
    result, seconds = json.loads(text), time.monotonic() - started - sum(waited)
    error = None if result.get("ok") else str(result.get("error", {}).get("type", "unknown"))
    record = CallRecord(call["id"], name, arguments, text, error is None, seconds, turn, error)
    emit(ToolFinished(record))
    return record


def _with_timed_approval(context: CallContext) -> tuple[CallContext, list[float]]:
    """A context for one call, and the list that takes the seconds its approval took.

    Those are not the call's: its deadline is later by them. Where the person interrupted
    instead of answering, the call is not run.
    """
    waited: list[float] = []
    if context.approve is None:
        return context, waited
    approve = context.approve

    async def timed(request: ApprovalRequest) -> Verdict:
        asked = time.monotonic()
        try:
            verdict = await approve(request)
        finally:
            waited.append(time.monotonic() - asked)
        if own.deadline is not None:
            own.deadline += waited[-1]
        if own.interrupted is not None and own.interrupted.is_set():
            raise ToolError("interrupted", "not run: the person interrupted")
        return verdict

    own = replace(context, approve=timed)
    return own, waited


async def first_of(
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


def failure(kind: str, message: str) -> str:
    """A result for a call that the dispatcher was not asked, or not to the end."""
    return json.dumps({"ok": False, "error": {"type": kind, "message": message}})
