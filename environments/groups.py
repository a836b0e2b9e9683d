"""Rollouts in groups: run, retry what the infrastructure broke, judge, score; evaluation on a list of tasks.

An attempt that the infrastructure spoils (PolicyError, a failing setup, a dead sandbox, an exception in
reward(), a passed deadline) is tried again `retries` times. What still fails is an errored rollout: it keeps
its place in the group, has no reward and no weight, and is counted by kind. Ending by max_turns or
token_limit is no error: the environment judges what is there.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from environments import agent_loop
from environments.agent_loop import Limits, LoopResult, StopReason
from environments.base import Environment, Reward, Rollout, RolloutError, ScoredGroup, Task, advantages
from environments.policies.base import Policy, PolicyError, Sampling
from environments.tool_context import INFRASTRUCTURE, ToolContext
from rl_cli.core.cuts import head
from tools.dispatcher import ToolError, tool_schemas

ATTEMPT_SECONDS = 1800.0
TEARDOWN_SECONDS = 60.0


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
    attempt_seconds: float = ATTEMPT_SECONDS,
) -> ScoredGroup:
    """Runs `group_size` rollouts of one task together and scores them against each other."""
    options: dict[str, Any] = {"judge": judge, "retries": retries, "attempt_seconds": attempt_seconds}
    groups = await run_groups(env, [task], policy, group_size, sampling, limits, rng, **options)
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
    attempt_seconds: float = ATTEMPT_SECONDS,
) -> list[ScoredGroup]:
    """Runs the groups of all tasks at one time.

    Args:
        rng: Draws each group's toolsets; without one, the same draw each time.
        judge: A policy that reward() may ask.
        retries: Further attempts at a rollout that the infrastructure spoilt.
        attempt_seconds: Bound of one attempt, from setup() to reward().

    Returns:
        One group per task, in task order, each of exactly `group_size` rollouts.

    Raises:
        BadUsage: the environment names a toolset that does not exist.
    """
    rng = rng or random.Random(0)
    runner = _Runner(env, policy, sampling, limits, judge, retries, attempt_seconds)
    drawn = [env.toolsets(rng) for _ in tasks]
    rollouts = await asyncio.gather(
        *(
            runner.rollout(task, toolsets, f"{task.id}/{member}")
            for task, toolsets in zip(tasks, drawn, strict=True)
            for member in range(group_size)
        )
    )
    groups = []
    for place, (task, toolsets) in enumerate(zip(tasks, drawn, strict=True)):
        group = rollouts[place * group_size : (place + 1) * group_size]
        scores, has_signal = advantages([r.reward.value if r.reward else None for r in group])
        groups.append(ScoredGroup(task, list(group), scores, toolsets, has_signal))
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
    attempt_seconds: float = ATTEMPT_SECONDS,
    concurrency: int = 256,
    on_rollout: Callable[[Rollout], None] | None = None,
) -> Evaluation:
    """Runs one rollout per task, greedily unless `sampling` says otherwise, `concurrency` at a time."""
    rng, sampling = rng or random.Random(0), sampling or Sampling(temperature=0.0)
    runner = _Runner(env, policy, sampling, limits, judge, retries, attempt_seconds)
    free = asyncio.Semaphore(concurrency)

    async def one(task: Task, toolsets: tuple[str, ...]) -> Rollout:
        async with free:
            rollout = await runner.rollout(task, toolsets, task.id)
        if on_rollout:
            on_rollout(rollout)
        return rollout

    rollouts = await asyncio.gather(*(one(task, env.toolsets(rng)) for task in tasks))
    verdicts = [r.reward for r in rollouts if r.reward]
    accuracy = sum(v.parts.get("correct", v.value) for v in verdicts) / len(verdicts) if verdicts else None
    errors = Counter(r.error.kind for r in rollouts if r.error)
    return Evaluation(len(verdicts), accuracy, dict(errors), rollouts)


@dataclass
class _Runner:
    """What all rollouts of one call share."""

    env: Environment
    policy: Policy
    sampling: Sampling
    limits: Limits | None
    judge: Policy | None
    retries: int
    attempt_seconds: float
    schemas: dict[tuple[str, ...], list[dict[str, Any]]] = field(default_factory=dict)

    async def rollout(self, task: Task, toolsets: tuple[str, ...], rollout_id: str) -> Rollout:
        """Tries until an attempt can be judged, at most 1 + retries times and not beyond the deadline."""
        if toolsets not in self.schemas:
            self.schemas[toolsets] = tool_schemas(toolsets, "rollout")
        deadline = self.limits.deadline if self.limits else None
        rollout = await self._attempt(task, toolsets, rollout_id)
        for retry in range(1, 1 + self.retries):
            if rollout.error is None or (deadline is not None and time.monotonic() >= deadline):
                break
            rollout = await self._attempt(task, toolsets, f"{rollout_id}/retry-{retry}")
        return rollout

    async def _attempt(self, task: Task, toolsets: tuple[str, ...], attempt_id: str) -> Rollout:
        env, rollout = self.env, Rollout(task, None)
        try:
            ctx = ToolContext(attempt_id, self.judge, env.sandbox(task))
        except Exception as error:  # as any other of the environment's, it spoils this attempt only
            rollout.error = _as_rollout_error("sandbox", error)
            return rollout
        doing, set_up = "sandbox", False
        try:
            async with asyncio.timeout(self.attempt_seconds):
                await ctx.prepare()
                doing = "policy"
                # Open while setup() runs and closed before reward(): a policy that batches its open sessions
                # waits for those being prepared and never for those being judged.
                async with self.policy.open(attempt_id, self.schemas[toolsets], self.sampling) as session:
                    doing, set_up = "setup", True
                    await env.setup(task, ctx)
                    doing = "environment"
                    prompt, context = env.prompt(task), ctx.rollout_context(toolsets)
                    rollout.result = await agent_loop.run(session, prompt, context, self.limits)
                rollout.error = _spoilt(rollout.result)
                if rollout.error is None:
                    doing = "reward"
                    rollout.reward = _checked(await env.reward(task, rollout, ctx))
        except Exception as error:  # whatever environment, policy or sandbox raise spoils this attempt only
            rollout.error = _as_rollout_error(doing, error)
        finally:
            await self._tear_down(task, ctx, rollout, set_up)
        if rollout.error:
            rollout.reward = None
        return rollout

    async def _tear_down(self, task: Task, ctx: ToolContext, rollout: Rollout, set_up: bool) -> None:
        """Lets the environment end what setup() began, and then ends the attempt's sandbox."""
        try:
            try:
                if set_up:
                    async with asyncio.timeout(TEARDOWN_SECONDS):
                        await self.env.teardown(task, ctx)
            finally:
                async with asyncio.timeout(TEARDOWN_SECONDS):
                    await ctx.cleanup()
        except Exception as error:  # the verdict stands only if the sandbox was whole to the end
            rollout.error = rollout.error or _as_rollout_error("teardown", error)


def _spoilt(result: LoopResult) -> RolloutError | None:
    """The infrastructure's failure that ended the loop or a call in it, if any."""
    if result.stop is StopReason.ERROR:
        return RolloutError("policy", result.error or "the policy could not answer")
    if result.stop is StopReason.DEADLINE:
        return RolloutError("timeout", "the deadline passed before the rollout ended")
    if result.stop in (StopReason.INTERRUPTED, StopReason.BUDGET):
        return RolloutError(str(result.stop), "the rollout was ended from outside")
    broken = next((call for call in result.calls if call.error_type in INFRASTRUCTURE), None)
    return (
        RolloutError(str(broken.error_type), f"{broken.name}: {head(broken.result, 300)}") if broken else None
    )


def _checked(reward: Reward) -> Reward:
    if not isinstance(reward, Reward) or not math.isfinite(reward.value):
        raise ValueError(f"reward() must return a Reward with a finite value, not {reward!r}")
    return reward


def _as_rollout_error(kind: str, error: Exception) -> RolloutError:
    """Kind: what the error itself says where it says it, else where it happened."""
    if isinstance(error, PolicyError):
        kind = "judge" if kind == "reward" else "policy"
    elif isinstance(error, TimeoutError):
        kind = "timeout"
    elif isinstance(error, ToolError) and error.type in INFRASTRUCTURE:
        kind = error.type
    hint = getattr(error, "hint", None)
    return RolloutError(kind, f"{type(error).__name__}: {error}{f' ({hint})' if hint else ''}")
