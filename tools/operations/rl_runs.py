"""Tools: starting, checking, stopping and reading training runs."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tools.dispatcher import CallContext, Estimate, ToolError, tool
from tools.operations.draft import all_rollouts, current_draft, scope_of_run
from tools.spec import FINAL_ANSWER

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.runs.run_dir import RunDir
    from tools.spec import Judge

START_SECONDS = 120.0


def _find(context: CallContext, run_id: str | None) -> Any:
    """The run named, else the session's newest, else the newest of all."""
    from rl_cli.core.settings import home
    from rl_cli.runs.store import find_run

    return find_run(home(), run_id or context.state.get("run_id") or "latest")


def _estimate(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What the draft's run would take."""
    from rl_cli.core.settings import home, load_settings
    from rl_cli.spending.estimates import estimate_run
    from rl_cli.spending.limits import Limits
    from rl_cli.spending.rates import rate_here, with_run_budget

    settings = load_settings()
    config = with_run_budget(current_draft(context).config, Limits.from_settings(settings))
    found = estimate_run(config, home(), rate_here(config, settings))
    return replace(found, what=_described(config), scope=scope_of_run(config, all_rollouts(config)))


def _described(config: RunConfig) -> str:
    """The run that a config describes, in one line without a word that the config's author chose.

    Names stand in the scope: a model's name is free text, and could read like a part of the question.
    """
    if config.backend.name == "replay":
        return "play a recorded run; nothing is trained"
    grpo = config.grpo
    return f"train for {grpo.steps} steps of {grpo.batch_size} rollouts, seed {config.seed}"


@tool(toolset="rl", risk="spend", deadline=math.inf, exclusive=True, estimate=_estimate)
async def rl_start_training(context: CallContext, watch: bool = False) -> dict[str, Any]:
    """Start training with the draft config. Needs approval. Run rl_test_inference first.

    The run goes on by itself even if this conversation ends. Next: rl_check_status with wait=true.

    Args:
        watch: Go on as rl_check_status with wait=true does, in the same call.
    """
    from rl_cli.config.machine import can_train
    from rl_cli.core.settings import ensure_home, home, load_settings
    from rl_cli.runs.launch import start_run, stop_run
    from rl_cli.runs.start_warnings import start_warnings
    from rl_cli.runs.supervision.tracking_mode import wanted_mode

    config = current_draft(context).config
    if config.backend.name == "trl":
        possible, why_not = can_train(config.profile)
        if not possible:
            raise ToolError("cannot_train_here", f"profile {config.profile} cannot run here: {why_not}")
    warnings = await asyncio.to_thread(start_warnings, config, home(), load_settings())
    session = context.task_id if context.caller == "chat" else None
    starting = asyncio.ensure_future(asyncio.to_thread(start_run, config, ensure_home(), session=session))
    try:
        async with asyncio.timeout(START_SECONDS):
            run = await asyncio.shield(starting)
    except (asyncio.CancelledError, TimeoutError):  # what a call started, it ends
        run = await starting
        await asyncio.to_thread(stop_run, run, "assistant", "its start was cancelled", False, now=True)
        raise
    context.state["run_id"] = run.id
    if tested := context.state.get("inference_test"):
        run.append_event("decision", by="assistant", what="start", reason=tested)
    summary = run.summary()
    started = {
        "run_id": run.id,
        "dir": str(run.path),
        "state": summary["state"],
        "total_steps": summary["total_steps"],
        "first_check_seconds": config.health.first_check_seconds,
        "wandb": summary["wandb_url"] or wanted_mode(config.tracking.wandb, config.backend.name),
        **({"warning": "; ".join(warnings)} if warnings else {}),
    }
    if not watch:
        return started
    found = await _waited(context, run)
    return {**started, "state": found["run"]["state"], **found}


@tool(toolset="rl", risk="read", deadline=math.inf)
async def rl_check_status(
    context: CallContext, run_id: str | None = None, wait: bool = False, decision: str | None = None
) -> dict[str, Any]:
    """Check a run. With wait, return at the next due check, an alert, the end, or when the person interrupts.

    `why` says which. Judge by progress: reward_first, reward_last, reward_best, signal_share (share of
    groups that teach something), steps_since_best, eta_seconds. Never call it in a loop without wait.
    Where a `decision` is returned, a compact check has made it: `change` and `ask` are yours to carry out.

    Args:
        run_id: The run; without it, the one that this conversation started, else the newest. A run that
            somebody else started: wandb:entity/project/run.
        wait: Wait for something to judge rather than answer at once.
        decision: What the last check led you to decide, with its figures; kept in the run's report.
    """
    from rl_cli.runs.checks.monitor import status_of
    from rl_cli.tracking.watcher import refresh, watching

    run = _find(context, run_id)
    if decision:
        run.append_event("decision", by="assistant", what="goes on", reason=decision)
    if wait:
        async with watching(run):
            return await _waited(context, run)
    old = await asyncio.to_thread(refresh, run)
    return {"why": "now", **status_of(run), **({"note": old} if old else {})}


async def _waited(context: CallContext, run: RunDir) -> dict[str, Any]:
    """A run's status at the next check that is for the conversation to judge."""
    from rl_cli.runs.checks.due_checks import DueChecks
    from rl_cli.runs.checks.monitor import status_of, wait_for_check

    if context.judge:
        found = await _watched(context, context.judge, run)
    else:
        outcome = await wait_for_check(run, context.interrupted, context.on_progress)
        if outcome.why == "end":  # it is told here: no monitor needs to judge it
            await asyncio.to_thread(DueChecks(run).take_end)
        found = {"why": outcome.why, **await asyncio.to_thread(status_of, run, outcome)}
    if found["why"] == "interrupted" and context.interrupted:
        context.interrupted.clear()  # it ended the wait; the conversation goes on
    return found


async def _watched(context: CallContext, judge: Judge, run: RunDir) -> dict[str, Any]:
    """Waits through the checks that `judge` judges; at the end its words to the person end the turn."""
    from rl_cli.monitoring.last_words import end_answer
    from rl_cli.monitoring.watching import watch
    from rl_cli.runs.checks.monitor import status_of

    watched = await watch(run, judge, "assistant", context.interrupted, context.on_progress)
    outcome, decision = watched.outcome, watched.decision
    status = await asyncio.to_thread(status_of, run, outcome)
    if decision is None:
        return {"why": outcome.why, **status}
    if outcome.why == "end":
        answer = await asyncio.to_thread(end_answer, run, decision)
        context.state[FINAL_ANSWER] = answer
        return {"why": "end", "run": status["run"], "progress": status["progress"], "told": answer}
    made = {"decision": decision.what, "reason": decision.reason, "message": decision.message}
    return {"why": outcome.why, **made, **status}


@tool(toolset="rl", risk="write", deadline=300)
async def rl_stop_training(context: CallContext, reason: str, run_id: str | None = None) -> dict[str, Any]:
    """Stop a run: it finishes its step, saves a checkpoint, is evaluated, and ends as `stopped`.

    Args:
        reason: Why, with the figures that decided; it is kept in the report.
        run_id: The run; without it, the one that this conversation started, else the newest.
    """
    from rl_cli.runs.launch import stop_run

    run = _find(context, run_id)
    await asyncio.to_thread(stop_run, run, "assistant", reason, True)
    summary = run.summary()
    return {"run_id": run.id, **{name: summary[name] for name in ("state", "reason", "step")}}


@tool(toolset="rl", risk="read")
async def rl_get_results(
    context: CallContext, run_id: str | None = None, against: str | None = None
) -> dict[str, Any]:
    """Results of a run: test accuracy before and after, the gain, samples, checkpoint, report and notes.

    `initial` is where GRPO started, `final` where it ended, `best` the checkpoint chosen on validation; all
    are shares of `n` test problems, answered greedily. `checkpoint` is that of `best`,
    `checkpoint_last` that of `final`.

    Args:
        run_id: The run; without it, the one that this conversation started, else the newest.
        against: Another run: `paired` then tests this one against it on the same test problems, or says
            `why_not`. Only that tells which of two runs is better.
    """
    from rl_cli.runs.reports.compare import compare
    from rl_cli.runs.reports.report import results

    run = _find(context, run_id)
    found = await asyncio.to_thread(results, run)
    if against is None:
        return found
    compared = await asyncio.to_thread(compare, [_find(context, against), run])
    return {**found, "paired": compared["paired"][0]}


@tool(toolset="rl", risk="read")
async def rl_list_runs(limit: Annotated[int, Field(ge=1, le=500)] = 20) -> dict[str, Any]:
    """List runs, newest first, with state, step, accuracy and `seconds` of running, all attempts together.

    Args:
        limit: At most this many.
    """
    from rl_cli.core.settings import home
    from rl_cli.runs.outcome import seconds_taken
    from rl_cli.runs.store import list_runs

    runs = (await asyncio.to_thread(list_runs, home()))[:limit]
    return {"runs": [{**run.summary(), "seconds": seconds_taken(run.state())} for run in runs]}
