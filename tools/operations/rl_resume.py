"""Tool: going on with a training run from its last good checkpoint."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from tools.dispatcher import CallContext, Estimate, tool
from tools.operations.draft import all_rollouts, scope_of_run


def _find(context: CallContext, run_id: str | None) -> Any:
    from rl_cli.core.settings import home
    from rl_cli.runs.store import find_run

    return find_run(home(), run_id or context.state.get("run_id") or "latest")


def _estimate(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What the rest of the run would take."""
    from rl_cli.core.settings import home, load_settings
    from rl_cli.runs.resuming.plan import make_plan
    from rl_cli.runs.settle import settle
    from rl_cli.runs.state_file import is_over
    from rl_cli.spending.estimates import estimate_run
    from rl_cli.spending.rates import rate_here

    run, settings = _find(context, arguments.get("run_id")), load_settings()
    state = settle(run)
    if state["state"] == "lost" and not is_over(state):
        return Estimate(what="watch over a run again whose trainer still runs", scope={"run": run.id})
    plan, whole = make_plan(run, state, arguments.get("changes") or {})
    config = plan.rest_of(whole, rate_here(whole, settings))
    what = f"go on with a run from step {plan.step} to step {whole.grpo.steps}"
    found = estimate_run(config, home(), rate_here(config, settings))
    scope = {"run": run.id, **scope_of_run(config, all_rollouts(config))}
    return replace(found, what=what, scope=scope)


@tool(toolset="rl", risk="spend", deadline=240, exclusive=True, estimate=_estimate)
async def rl_resume_training(
    context: CallContext, run_id: str | None = None, changes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Go on with a run that failed, was stopped or lost, from its last good checkpoint. Needs approval.

    Steps, order of the tasks, optimiser and W&B run are continued; a checkpoint from when the figures had
    become NaN is never used. A lost run whose trainer still runs is watched over again instead.
    Next: rl_check_status with wait=true.

    Args:
        run_id: The run; without it, the one that this conversation started, else the newest.
        changes: Dotted field -> value from here on, e.g. {"grpo.learning_rate": 0.0001}. Only grpo.steps,
            learning_rate, temperature, kl_beta, clip_epsilon, checkpoint_every, keep_last, keep_every and
            the sections evaluation, tracking, health and budget. Anything else needs a new run.
    """
    from rl_cli.runs.launch import stop_run
    from rl_cli.runs.resuming.resume import resume_run

    run = _find(context, run_id)
    session = context.task_id if context.caller == "chat" else None
    resuming = asyncio.ensure_future(asyncio.to_thread(resume_run, run, changes, session))
    try:
        resumed = await asyncio.shield(resuming)
    except asyncio.CancelledError:  # what a call started, it ends
        if not (await resuming).attached:
            await asyncio.to_thread(stop_run, run, "assistant", "its resume was cancelled", False, now=True)
        raise
    context.state["run_id"] = run.id
    summary = run.summary()
    return {
        "run_id": run.id,
        "state": summary["state"],
        "from_step": resumed.step,
        "total_steps": summary["total_steps"],
        "attempt": resumed.attempt,
        "how": resumed.sentence(),
        "notes": resumed.notes,
    }
