"""Tools: making a batch of training data, looking at how it goes, stopping it."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tools.dispatcher import CallContext, Estimate, Risk, ToolError, tool

if TYPE_CHECKING:
    from rl_cli.data.batch.config import BatchConfig
    from rl_cli.data.batch.folder import BatchFolder
    from rl_cli.data.generation.plan import Plan

STOP_SECONDS = 30.0


def find(context: CallContext, name: str | None) -> BatchFolder:
    """The batch named, else the conversation's, else the one that was worked on last.

    Raises:
        BadUsage: There is none of that name; one that is only being started counts.
        ToolError: There are no batches.
    """
    from rl_cli.data.batch.folder import batch_folder, find_batch
    from rl_cli.data.jobs.job import Job
    from rl_cli.data.jobs.status import newest_first

    if name or (name := context.state.get("batch")):
        folder = batch_folder(name)
        return folder if Job(folder, "generate").state() else find_batch(name)
    batches = newest_first()
    if not batches:
        raise ToolError("no_batch", "there are no batches yet", "data_generate makes one")
    return batches[0]


def _wanted(arguments: dict[str, Any]) -> BatchConfig:
    from rl_cli.data.jobs.wanted import wanted_batch

    given = {name: value for name, value in arguments.items() if name not in ("count", "settings")}
    return wanted_batch(given, arguments.get("settings") or {}, arguments.get("count"))


def _risk(context: CallContext, arguments: dict[str, Any]) -> Risk:
    """Any item can bring toolsets with commands."""
    from rl_cli.data.jobs.wanted import UNBOUNDED

    return "leave" if _wanted(arguments).sandbox.kind in UNBOUNDED else "spend"


def _estimate(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What the samples would cost that the batch still lacks."""
    from rl_cli.data.generation.plan import plan_of

    config = _wanted(arguments)
    plan = plan_of(config)
    named = {"batch": config.name, "model": str(config.model), "input": config.input}
    named |= {"sandbox": f"{config.sandbox.kind}{', with network' if config.sandbox.network else ''}"}
    named |= {"score": config.score} if config.score else {}
    named |= {"address": config.base_url} if config.base_url else {}
    return Estimate(
        where="this computer, with requests to the model's server",
        dollars=plan.dollars,
        basis=plan.basis.partition(";")[0],
        what=_what(plan),
        scope={**named, "items": plan.items, "samples": plan.samples},
    )


def _what(plan: Plan) -> str:
    """What would be done, and what of it cannot be."""
    if not plan.samples:
        return f"ask nothing: all {plan.ended} samples are there already; their rows are merged again"
    left_out = f"; {plan.no_sandbox} items cannot be: {plan.sandbox_problem}" if plan.no_sandbox else ""
    return f"ask a model for training data, in the background{left_out}"


@tool(toolset="data", risk="spend", deadline=180, exclusive=True, estimate=_estimate, risk_of=_risk)
async def data_generate(
    context: CallContext,
    input: str | None = None,
    name: str | None = None,
    model: str | None = None,
    toolsets: list[str] | None = None,
    distribution: str | None = None,
    count: Annotated[int, Field(ge=1)] | None = None,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Make a batch of training data: ask a model every item of an input, with tools. Needs approval.

    It goes on by itself even if this conversation ends. Asking again for a batch goes on where it stopped,
    and pays for nothing twice; `to_ask` 0 says that all its samples are there. Next: data_status with
    wait=true. At its end the rows are merged.

    Args:
        input: JSONL, JSON, CSV or Parquet file with prompt or messages, or a Hugging Face dataset. Left out,
            the batch of that name goes on.
        name: Of the batch; default: the input's name, with a number where that is a batch begun otherwise.
        model: Who is asked, as provider/name; default: the configured model.
        toolsets: What each item is offered; [] for nothing. Or give distribution.
        distribution: The name of a distribution of toolsets, drawn for each item.
        count: How many samples in all. An input with fewer items is asked several times.
        settings: Others by name, dotted: samples, max_turns, system_prompt, temperature, score (an
            environment), min_score, best_of, target, concurrency, max_samples, seed, sandbox.kind, ...
    """
    from rl_cli.data.batch.folder import batch_folder
    from rl_cli.data.generation.plan import plan_of
    from rl_cli.data.jobs.job import Job
    from rl_cli.data.jobs.launch import begin_job

    given = {"input": input, "name": name, "model": model, "toolsets": toolsets}
    asked = {**given, "distribution": distribution, "count": count, "settings": settings}
    config = await asyncio.to_thread(_wanted, asked)
    folder = batch_folder(config.name)
    known = {"to_ask": (await asyncio.to_thread(plan_of, config)).samples} if folder.exists() else {}
    order = config.model_dump(mode="json")
    state = await begin_job(Job(folder, "generate"), order)
    context.state["batch"] = config.name
    return {
        "name": config.name,
        "state": state.get("state"),
        "model": config.model,
        "max_items": config.max_samples,
        "samples_each": config.most_samples,
        **known,
        "dir": str(folder.path),
    }


@tool(toolset="data", risk="read", deadline=math.inf)
async def data_status(context: CallContext, name: str | None = None, wait: bool = False) -> dict[str, Any]:
    """How a batch is going: samples done and failed of how many, spend, its compression; other batches.

    With wait, return at its end, after half an hour, or when the person interrupts; `why` says which. Never
    call it in a loop without wait. A batch that is `stopped` or `failed` goes on with data_generate.

    Args:
        name: The batch; without it, the one of this conversation, else the newest.
        wait: Wait until nothing works on the batch any more rather than answer at once.
    """
    from rl_cli.data.jobs.status import batch_status, other_batches, wait_for_batch

    folder = await asyncio.to_thread(find, context, name)
    why = await wait_for_batch(folder, context.interrupted, context.on_progress) if wait else "now"
    if why == "interrupted" and context.interrupted:
        context.interrupted.clear()  # it ended the wait; the conversation goes on
    others = {} if wait else {"others": await asyncio.to_thread(other_batches, folder)}
    return {"why": why, **await asyncio.to_thread(batch_status, folder), **others}


@tool(toolset="data", risk="write", deadline=120)
async def data_stop(context: CallContext, name: str | None = None, now: bool = False) -> dict[str, Any]:
    """Stop the generation or compression of a batch. Nothing is lost, and it can go on later.

    What is in flight comes to its end and is kept, which may take minutes: `over` says whether it has.

    Args:
        name: The batch; without it, the one of this conversation, else the newest.
        now: End what is in flight too; its requests are paid for and give no rows.
    """
    from rl_cli.data.jobs.job import worker_of
    from rl_cli.data.jobs.launch import stop_work
    from rl_cli.data.jobs.status import batch_status

    folder = await asyncio.to_thread(find, context, name)
    worked = await asyncio.to_thread(worker_of, folder) is not None
    over = await asyncio.to_thread(stop_work, folder, now, STOP_SECONDS)
    return {"worked": worked, "over": over, **await asyncio.to_thread(batch_status, folder)}
