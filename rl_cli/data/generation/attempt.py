"""One attempt at one sample: sandbox made, the loop run, the result judged, all ended again."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from environments import agent_loop
from environments.agent_loop import (
    CallRecord,
    Limits,
    LoopEvent,
    LoopResult,
    Stop,
    StopReason,
    ToolFinished,
)
from environments.policies.base import Bounds, FinishReason, PolicyError, Usage
from environments.tool_context import ToolContext
from rl_cli.core.errors import BadUsage
from rl_cli.core.messages import Message, assistant
from rl_cli.data.batch.items import Item
from rl_cli.data.generation import terminal_agent
from rl_cli.data.generation.asking import sampling_of, with_prefill, with_system
from rl_cli.data.generation.outcome import Outcome
from rl_cli.data.generation.provider import BatchSession
from rl_cli.data.generation.sample_row import Asked, sample_row
from rl_cli.data.generation.sandboxes import WITH_IMAGE, bring, enter, sandbox_of
from rl_cli.data.generation.shared import Shared
from rl_cli.data.generation.tally import Tally
from tools.dispatcher import CallContext, ToolError
from tools.sandboxes.base import SandboxError

CLEANUP_SECONDS = 60.0

T = TypeVar("T")

log = logging.getLogger(__name__)


class Attempt:
    """One attempt at one sample."""

    session: BatchSession

    def __init__(self, shared: Shared, item: Item, key: str, attempt: int, earlier: Usage) -> None:
        self.shared, self.config, self.item, self.key = shared, shared.config, item, key
        self.attempt, self.earlier = attempt, earlier
        self.tally = Tally(shared.meter)
        self.result: LoopResult | None = None
        self.broken: CallRecord | None = None
        """The call that found the sandbox broken."""
        self.toolsets = shared.draws.of(item)
        self.sampling = sampling_of(self.config, key)
        self.deadline = time.monotonic() + self.config.item_seconds
        ephemeral = self.config.system_prompt
        self.stored = with_prefill(self.config.prefill, item.messages)
        self.sent = with_system(ephemeral, self.stored) if ephemeral else self.stored

    async def run(self) -> Outcome:
        try:
            config, scorer = self.config, self.shared.scorer
            sandbox = sandbox_of(self.item, config)
            ctx = ToolContext(f"{config.name}/{self.key}", scorer.judge if scorer else None, sandbox)
            try:
                await self._prepare(ctx)
                return await self._in(ctx)
            finally:
                await _at_the_end(ctx.cleanup(), "the end of the sandbox")
        except BadUsage as error:  # the row asks for a toolset that cannot be offered here
            return self._ended("failed", "toolsets", _told(error))
        except (SandboxError, ToolError) as error:
            return self._ended("failed", "sandbox", _told(error))
        except PolicyError as error:  # the policy cannot even open a conversation
            self.shared.policy.health.failed(error)
            return self._not_answered(error)
        except Exception as error:  # a bug, of ours or of an environment: one sample's, and the batch goes on
            log.warning("unexpected %s", type(error).__name__, exc_info=True)
            return self._ended("failed", "internal", _told(error))

    async def _prepare(self, ctx: ToolContext) -> None:
        try:
            await self._within(ctx.prepare(), "the sandbox")
            await self._within(bring(ctx, self.item, self.config), "the folder of the row")
        except TimeoutError as error:
            raise SandboxError(str(error)) from None

    async def _within(self, work: Awaitable[T], what: str) -> T:
        """What is no turn of the loop is bounded too: by as long as a sample may take."""
        bound = asyncio.timeout(self.config.item_seconds)
        try:
            async with bound:
                return await work
        except TimeoutError as error:
            if not bound.expired():
                raise
            raise TimeoutError(f"{what} was not ready after {self.config.item_seconds:g} seconds") from error

    async def _in(self, ctx: ToolContext) -> Outcome:
        """The sample in its sandbox."""
        scorer, policy = self.shared.scorer, self.shared.policy
        task = scorer.task(self.item) if scorer else None
        if scorer and task:
            setup = scorer.setup(task, ctx, self.config.item_seconds)
            await self._within(setup, "the environment's setup")
        try:
            context = CallContext(
                "batch",
                ctx.task_id,
                self.toolsets,
                sandbox=ctx.sandbox,
                state=ctx.state,
                live=ctx.live,
            )
            if self.item.cwd and self.config.sandbox.kind in WITH_IMAGE:
                await enter(context, self.item.cwd)
            bounds = Bounds(self.tally, self.deadline)
            tools = self.shared.schemas(self.toolsets)
            async with policy.open(self.key, tools, self.sampling, bounds=bounds) as self.session:
                self.result = await self._loop(context)
            if self.broken:
                told = json.loads(self.broken.result)["error"]["message"]
                return self._ended("failed", "sandbox", f"{self.broken.name}: {told}")
            return await self._judged(ctx, context)
        finally:
            if scorer and task:
                teardown = scorer.teardown(task, ctx, CLEANUP_SECONDS)
                await _at_the_end(teardown, "the environment's teardown")

    async def _loop(self, context: CallContext) -> LoopResult:
        """No more is asked once the sandbox is broken, or the agent has finished."""
        terminal = self.config.agent == "terminal"
        limits = Limits(self.config.max_turns, self.config.max_tokens, self.deadline)

        def on_event(event: LoopEvent) -> None:
            if isinstance(event, ToolFinished) and event.record.error_type == "sandbox":
                self.broken = self.broken or event.record

        async def before_request(messages: list[Message]) -> Stop | None:
            if self.broken:
                return Stop(StopReason.ERROR)
            return terminal_agent.stop_of(context, messages[len(self.sent) :]) if terminal else None

        result = await agent_loop.run(
            self.session, self.sent, context, limits, on_event=on_event, before_request=before_request
        )
        if terminal and result.stop is not StopReason.TOKEN_LIMIT:  # also in the last turn that there may be
            stop = terminal_agent.stop_of(context, result.messages[len(self.sent) :])
            result.stop = stop.reason if stop else result.stop
        return result

    async def _judged(self, ctx: ToolContext, context: CallContext) -> Outcome:
        result = self.result
        assert result
        answers = len(result.messages) - len(self.sent)
        if result.stop is StopReason.BUDGET:
            return self._ended("open", "budget", result.error)
        if result.stop is StopReason.ERROR and self.session.finish is FinishReason.CONTENT_FILTER:
            return self._ended("failed", "content_filter", result.error)
        if result.stop is StopReason.ERROR:
            return self._not_answered(PolicyError(result.error or "no answer"))
        if result.stop in (StopReason.OVERFLOW, StopReason.DEADLINE) and not answers:
            return self._ended("failed", str(result.stop), result.error or "the time was over")
        marks, score = set(), None
        if any(call.error_type == "network" for call in result.calls):
            marks.add("network_failed")
        answer = None
        if self.config.agent == "terminal":
            answer = terminal_agent.answer_of(context, result.messages)
        if self.shared.scorer:
            judged = result
            if answer is not None:  # where an environment looks for it
                judged = replace(result, messages=[*result.messages, assistant(answer)])
            try:
                task, seconds = self.shared.scorer.task(self.item), self.config.item_seconds
                judging = self.shared.scorer.score(task, judged, ctx, seconds)
                score = await self._within(judging, "the judgement")
            except Exception as error:  # the answer is paid for, and kept without a score
                log.warning("%s: not scored: %s", self.key, _told(error))
                marks.add("unscored")
        return self._ended("done", score=score, marks=marks, answer=answer)

    def _not_answered(self, error: PolicyError) -> Outcome:
        """The provider failed: this conversation, or altogether."""
        down = self.shared.policy.health.is_down
        return self._ended("open" if down else "failed", "provider", _told(error))

    def _ended(self, state: Any, reason: str | None = None, error: str | None = None, **more: Any) -> Outcome:
        result, usage = self.result, self.usage()
        row, answered = None, bool(result and len(result.messages) > len(self.sent))
        if result and (answered or usage.requests or usage.dollars):
            asked = Asked(
                self.key,
                self.shared.policy.name,
                {k: v for k, v in asdict(self.sampling).items() if v is not None},
                self.config.seed,
                self.toolsets,
                self.shared.schemas(self.toolsets),
                self.item.metadata,
            )
            made = result.messages[len(self.sent) :]
            row = sample_row(asked, self.stored, made, result, usage, self.shared.cost(usage), **more)
        attempts = self.session.attempts if reason == "provider" and result else self.attempt
        return Outcome(self.key, state, row, reason, error, max(1, attempts))

    def usage(self) -> Usage:
        """Of this attempt and those before it."""
        used = self.earlier + self.tally.lost
        if self.result:
            used += self.result.usage
        used.dollars = self.earlier.dollars + self.tally.dollars
        return used


async def _at_the_end(work: Awaitable[None], what: str) -> None:
    """What was answered is worth more than a clean end: one that fails is logged."""
    try:
        async with asyncio.timeout(CLEANUP_SECONDS):
            await work
    except Exception as error:
        log.warning("%s failed: %s", what, _told(error))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
