"""Rollouts in groups: run, retry what the infrastructure broke, judge, score; evaluation on a list of tasks.

An attempt that the infrastructure spoils (PolicyError, a failing setup, a dead sandbox, an exception in
reward(), a passed deadline) is tried again `retries` times. What still fails is an errored rollout: it keeps
its place in the group, has no reward and no weight, and is counted by kind. Ending by max_turns or
token_limit is no error: the environment judges what is there.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tools.dispatcher import ToolError, tool_schemas

from environments import agent_loop
from environments.agent_loop import Limits, LoopResult, StopReason
from environments.base import Environment, Reward, Rollout, RolloutError, ScoredGroup, Task, advantages
from environments.policies.base import Policy, PolicyError, Sampling
from environments.tool_context import ToolContext

INFRASTRUCTURE = frozenset({"sandbox", "network"})
"""Error types of tool results that spoil a rollout; every other failed call is the policy's to deal with."""


@dataclass
class Evaluation:
    """Accuracy of one rollout per task."""

    n: int
    """Tasks that could be judged."""
    accuracy: float | None
    """Mean over the judged tasks of parts["correct"], or the reward where that is missing; None for n = 0."""
    errors: dict[str, int]
    """Tasks that could not be judged, by kind."""
    rollouts: list[Rollout]
    """One per task, in task order."""


async def run_group(
    env: Environment,
    task: Task,
    policy: Policy,
    group_size: int,
    sampling: Sampling,
    limits: Limits | None = None,
    rng: random.Random | None = None,
    *,
    judge: Policy | None = None,
    retries: int = 1,
) -> ScoredGroup:
    """Runs `group_size` rollouts of one task together and scores them against each other."""
    groups = await run_groups(
        env, [task], policy, group_size, sampling, limits, rng, judge=judge, retries=retries
    )
    return groups[0]


async def run_groups(
    env: Environment,
    tasks: Sequence[Task],
    policy: Policy,
    group_size: int,
    sampling: Sampling,
    limits: Limits | None = None,
    rng: random.Random | None = None,
    *,
    judge: Policy | None = None,
    retries: int = 1,
) -> list[ScoredGroup]:
    """Runs the groups of all tasks at one time.

    Args:
        rng: Draws each group's toolsets; without one, the same draw each time.

    Returns:
        One group per task, in task order, each of exactly `group_size` rollouts.
    """
    rng = rng or random.Random(0)
    toolsets = [env.toolsets(rng) for _ in tasks]
    rollouts = await asyncio.gather(
        *(
            _rollout(env, task, policy, drawn, sampling, limits, judge, retries, f"{task.id}/{member}")
            for task, drawn in zip(tasks, toolsets, strict=True)
            for member in range(group_size)
        )
    )
    groups = []
    for place, (task, drawn) in enumerate(zip(tasks, toolsets, strict=True)):
        group = rollouts[place * group_size : (place + 1) * group_size]
        scores, has_signal = advantages([r.reward.value if r.reward else None for r in group])
        groups.append(ScoredGroup(task, list(group), scores, drawn, has_signal))
    return groups


async def evaluate(
    env: Environment,
    tasks: Sequence[Task],
    policy: Policy,
    sampling: Sampling | None = None,
    limits: Limits | None = None,
    rng: random.Random | None = None,
    *,
    judge: Policy | None = None,
    retries: int = 1,
    concurrency: int = 256,
    on_rollout: Callable[[Rollout], None] | None = None,
) -> Evaluation:
    """Runs one rollout per task, greedily unless `sampling` says otherwise, `concurrency` at a time."""
    rng, sampling = rng or random.Random(0), sampling or Sampling(temperature=0.0)
    free = asyncio.Semaphore(concurrency)

    async def one(task: Task, toolsets: tuple[str, ...]) -> Rollout:
        async with free:
            rollout = await _rollout(env, task, policy, toolsets, sampling, limits, judge, retries, task.id)
        if on_rollout:
            on_rollout(rollout)
        return rollout

    rollouts = await asyncio.gather(*(one(task, env.toolsets(rng)) for task in tasks))
    verdicts = [r.reward for r in rollouts if r.reward]
    accuracy = sum(v.parts.get("correct", v.value) for v in verdicts) / len(verdicts) if verdicts else None
    errors = Counter(r.error.kind for r in rollouts if r.error)
    return Evaluation(len(verdicts), accuracy, dict(errors), rollouts)


async def _rollout(
    env: Environment,
    task: Task,
    policy: Policy,
    toolsets: tuple[str, ...],
    sampling: Sampling,
    limits: Limits | None,
    judge: Policy | None,
    retries: int,
    rollout_id: str,
) -> Rollout:
    """Tries until an attempt can be judged, at most 1 + retries times and not beyond the deadline."""
    rollout = Rollout(task, None)
    for attempt in range(1 + retries):
        attempt_id = rollout_id if attempt == 0 else f"{rollout_id}/retry-{attempt}"
        rollout = await _attempt(
            env, task, policy, toolsets, sampling, limits, ToolContext(attempt_id, judge=judge)
        )
        passed = limits is not None and limits.deadline is not None and time.monotonic() >= limits.deadline
        if rollout.error is None or passed:
            break
    return rollout


async def _attempt(
    env: Environment,
    task: Task,
    policy: Policy,
    toolsets: tuple[str, ...],
    sampling: Sampling,
    limits: Limits | None,
    ctx: ToolContext,
) -> Rollout:
    rollout = Rollout(task, None)
    kind, set_up = "policy", False
    try:
        # The session is open while setup() runs, and closed before reward(): a policy that batches its open
        # sessions waits for the ones being prepared and never for the ones being judged.
        async with policy.open(ctx.task_id, tool_schemas(toolsets), sampling) as session:
            kind, set_up = "setup", True
            await env.setup(task, ctx)
            kind = "environment"
            context = ctx.rollout_context(toolsets)
            rollout.result = await agent_loop.run(session, env.prompt(task), context, limits)
        rollout.error = _spoilt(rollout.result)
        if rollout.error is None:
            kind = "reward"
            rollout.reward = await env.reward(task, rollout, ctx)
            _check(rollout.reward)
    except Exception as error:  # whatever environment, policy or sandbox raise spoils this attempt only
        rollout.reward, rollout.error = None, _as_rollout_error(kind, error)
    finally:
        if set_up:
            try:
                await env.teardown(task, ctx)
            except Exception as error:  # the verdict stands only if the sandbox was whole
                rollout.reward, rollout.error = None, rollout.error or _as_rollout_error("teardown", error)
    return rollout


def _spoilt(result: LoopResult) -> RolloutError | None:
    """The infrastructure's failure that ended the loop or a call in it, if any."""
    if result.stop is StopReason.ERROR:
        return RolloutError("policy", result.error or "the policy could not answer")
    if result.stop is StopReason.DEADLINE:
        return RolloutError("timeout", "the deadline passed before the rollout ended")
    if result.stop in (StopReason.INTERRUPTED, StopReason.BUDGET):
        return RolloutError(str(result.stop), "the rollout was ended from outside")
    broken = next((call for call in result.calls if call.error_type in INFRASTRUCTURE), None)
    return RolloutError(str(broken.error_type), f"{broken.name}: {broken.result[:300]}") if broken else None


def _check(reward: Reward) -> None:
    if not isinstance(reward, Reward) or not abs(reward.value) < float("inf"):
        raise ValueError(f"reward() must return a Reward with a finite value, not {reward!r}")


def _as_rollout_error(kind: str, error: Exception) -> RolloutError:
    """Kind: what the error itself says where it says it, else where it happened."""
    if isinstance(error, PolicyError):
        kind = "judge" if kind == "reward" else "policy"
    elif isinstance(error, TimeoutError):
        kind = "timeout"
    elif isinstance(error, ToolError) and error.type in INFRASTRUCTURE:
        kind = error.type
    return RolloutError(kind, f"{type(error).__name__}: {error}")
