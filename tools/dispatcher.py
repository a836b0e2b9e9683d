"""The one way to call a tool, for the assistant, rollouts, reward functions and the command line alike.

`handle_function_call` always returns the text of a JSON object: `{"ok": true, ...}` or
`{"ok": false, "error": {"type", "message", "hint"?}}`. It raises only CancelledError, when it is cancelled.
Its own error types: unknown_tool, invalid_arguments, refused, timeout, cancelled, bad_usage, failed,
internal_error; a tool adds its own with ToolError.

Approval: every call asks `context.approve`. Without one, operations tools may read and write but not execute
or spend; everyday tools may do what they do in rollouts, rewards and batches (whose sandbox bounds them), and
only read and write elsewhere.

A call that is over its deadline or cancelled is told so: an async tool by CancelledError, with a few seconds
to end what it started; a sync one by `context.cancelled`, and nobody waits for it any longer.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.errors import BadUsage, Refused, did_you_mean
from rl_cli.core.json_text import to_json
from tools.arguments import read_arguments
from tools.registry import all_tools, find_tool, tool, tool_schemas, tool_specs
from tools.results import as_text, failure, failure_of, success
from tools.spec import (
    ApprovalRequest,
    CallContext,
    Caller,
    Estimate,
    Risk,
    ToolError,
    ToolSpec,
    Verdict,
)
from tools.threads import ThreadPool
from tools.toolsets import OPERATIONS

__all__ = [
    "ApprovalRequest",
    "CallContext",
    "Caller",
    "Estimate",
    "Risk",
    "ToolError",
    "ToolSpec",
    "Verdict",
    "all_tools",
    "find_tool",
    "handle_function_call",
    "tool",
    "tool_schemas",
    "tool_specs",
]

CLEANUP_SECONDS = 5.0
"""How long a call that was told to end may take to do so."""
SANDBOXED = frozenset({"rollout", "reward", "batch"})

log = logging.getLogger(__name__)
_threads = ThreadPool()


async def handle_function_call(
    name: str, arguments: str | dict[str, Any] | None, context: CallContext
) -> str:
    """Calls a tool and returns its result as the text of a JSON object, never longer than the context allows.

    Args:
        name: The tool's name, as the model wrote it.
        arguments: A dict, JSON text of an object, or nothing (None, "", "null").
        context: Who calls, and what the call may do.
    """
    label = "call"
    try:
        spec = _find(name, context)
        label = spec.name
        values = read_arguments(spec, arguments)
        verdict = await _approval(spec, values, context)
        if not verdict.allow:
            reason = verdict.reason or "no reason was given"
            hint = "do not repeat the call; do without it, or say what you need and why"
            result = failure("refused", f"the call of {spec.name} was refused: {reason}", hint)
        else:
            result = success(await _run(spec, values, context))
    except Exception as error:
        log.debug("the call of %.100s failed", name, exc_info=True)
        result = failure_of(error)
    if context.overflow_dir is None:
        return as_text(result, context.result_limit, None, label)
    # It may be large and the disk slow.
    return await asyncio.shield(
        _threads.run(partial(as_text, result, context.result_limit, context.overflow_dir, label))
    )


def _find(name: str, context: CallContext) -> ToolSpec:
    toolsets = context.toolsets
    if context.caller == "rollout":
        toolsets = tuple(t for t in toolsets if t not in OPERATIONS)
    specs = tool_specs(toolsets)
    if isinstance(name, str) and name in specs:
        return specs[name]
    shown = one_line(name if isinstance(name, str) else to_json(name), 100)
    hint = did_you_mean(shown, list(specs)) if specs else "no tools are offered here: answer without one"
    raise ToolError("unknown_tool", f"there is no tool '{shown}'", hint)


async def _approval(spec: ToolSpec, values: dict[str, Any], context: CallContext) -> Verdict:
    if spec.risk_of is not None:
        spec = replace(spec, risk=await _threads.run(partial(spec.risk_of, context, values)))
    if context.approve is not None:
        return await context.approve(ApprovalRequest(spec, values, await _estimate(spec, values, context)))
    if spec.risk in ("read", "write") or (context.caller in SANDBOXED and spec.toolset not in OPERATIONS):
        return Verdict(True)
    return Verdict(False, f"it would {spec.risk}, and there is nobody to approve that")


async def _estimate(spec: ToolSpec, values: dict[str, Any], context: CallContext) -> Estimate | None:
    if spec.estimate is None:
        return None
    try:
        return await _threads.run(partial(spec.estimate, context, values))
    except (BadUsage, Refused):  # nobody need be asked about what cannot be done
        raise
    except Exception:  # the call itself will say what is wrong
        log.debug("no estimate for %s", spec.name, exc_info=True)
        return None


async def _run(spec: ToolSpec, values: dict[str, Any], context: CallContext) -> Any:
    seconds = context.call_timeout if spec.deadline is None else spec.deadline
    if context.deadline is not None:
        seconds = min(seconds, context.deadline - time.monotonic())
    if seconds <= 0:
        raise ToolError("timeout", f"no time was left to call {spec.name}")
    own = replace(context, cancelled=type(context.cancelled)())
    if spec.context_parameter:
        values = values | {spec.context_parameter: own}
    call = asyncio.create_task(_invoke(spec, values), name=f"tool-{spec.name}")
    try:
        await asyncio.wait({call}, timeout=None if seconds == math.inf else seconds)
        finished = call.done()
    finally:  # also when we are cancelled
        if not call.done():
            own.cancelled.set()
            call.cancel()
            await _let_end(call)
    if not finished:
        hint = "ask for less at a time, or go on without it"
        raise ToolError("timeout", f"{spec.name} did not finish within {seconds:.4g} seconds", hint)
    if call.cancelled():
        raise ToolError("cancelled", f"{spec.name} was cancelled from within")
    return call.result()


async def _invoke(spec: ToolSpec, values: dict[str, Any]) -> Any:
    if not inspect.iscoroutinefunction(spec.function):
        return await _threads.run(partial(spec.function, **values))
    try:
        return await spec.function(**values)
    except SystemExit as error:  # would end the event loop
        raise RuntimeError(f"the tool called exit({error.code})") from error


async def _let_end(call: asyncio.Task[Any]) -> None:
    done, _ = await asyncio.wait({call}, timeout=CLEANUP_SECONDS)
    if done and not call.cancelled():
        call.exception()  # looked at, so that asyncio does not complain about it later
