"""One sample of an item: toolsets drawn, sandbox made, the loop run, the result judged."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

from environments import agent_loop
from environments.agent_loop import Limits, LoopResult, StopReason
from environments.policies.base import Bounds, FinishReason, PolicyError, Sampling, Usage
from environments.tool_context import ToolContext
from rl_cli.core.messages import Message, system
from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.items import Item
from rl_cli.data.batch.samples import row_key
from rl_cli.data.generation import terminal_agent
from rl_cli.data.generation.item_log import about
from rl_cli.data.generation.outcome import Outcome
from rl_cli.data.generation.provider import BatchPolicy, BatchSession
from rl_cli.data.generation.sample_row import Asked, sample_row
from rl_cli.data.generation.sandboxes import WITH_IMAGE, enter, sandbox_of
from rl_cli.data.generation.scoring import Scorer
from rl_cli.data.generation.tally import Tally
from rl_cli.data.generation.toolsets import Draws
from rl_cli.spending.meter import SessionMeter
from tools.dispatcher import CallContext, ToolError, tool_schemas
from tools.sandboxes.base import SandboxError

SANDBOX_ATTEMPTS = 2
"""A sample whose sandbox broke is begun again so often in all."""
CLEANUP_SECONDS = 60.0

log = logging.getLogger(__name__)


class Sampler:
    """What all samples of a batch share.

    Args:
        config: Of the batch.
        policy: Whom they ask.
        meter: Who pays.
        scorer: Who judges them; None: nobody.
    """

    def __init__(
        self, config: BatchConfig, policy: BatchPolicy, meter: SessionMeter, scorer: Scorer | None
    ) -> None:
        self.config, self.policy, self.meter, self.scorer = config, policy, meter, scorer
        self.draws = Draws(config)
        self._schemas: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        self._priced = meter.price_of(policy.name, Usage(1, 1)) is not None

    async def run(self, item: Item, number: int) -> Outcome:
        """One sample, to its end. Raises CancelledError only, when it is cancelled."""
        with about(item):
            return await self._run(item, row_key(item, number))

    async def _run(self, item: Item, key: str) -> Outcome:
        earlier = Usage()
        for attempt in range(1, SANDBOX_ATTEMPTS + 1):
            sample = _Sample(self, item, key, attempt, earlier)
            outcome = await sample.run()
            if outcome.reason != "sandbox":
                break
            earlier = sample.usage()
        return outcome

    def schemas(self, toolsets: tuple[str, ...]) -> list[dict[str, Any]]:
        """Of the tools that are offered; one list for all that are offered the same."""
        if toolsets not in self._schemas:
            self._schemas[toolsets] = tool_schemas(toolsets)
        return self._schemas[toolsets]

    def cost(self, usage: Usage) -> float | None:
        """Dollars; None where the price is not known."""
        return round(usage.dollars, 9) if self._priced else None


class _Sample:
    """One attempt at one sample."""

    session: BatchSession

    def __init__(self, sampler: Sampler, item: Item, key: str, attempt: int, earlier: Usage) -> None:
        self.sampler, self.config, self.item, self.key = sampler, sampler.config, item, key
        self.attempt, self.earlier = attempt, earlier
        self.tally = Tally(sampler.meter)
        self.result: LoopResult | None = None
        self.toolsets = sampler.draws.of(item)
        self.sampling = _sampling(self.config, key)
        self.deadline = time.monotonic() + self.config.item_seconds
        ephemeral = self.config.system_prompt
        stored: list[Message] = [*self.config.prefill, *item.messages]  # type: ignore[list-item]
        self.stored = stored
        self.sent = _with_system(ephemeral, stored) if ephemeral else stored

    async def run(self) -> Outcome:
        try:
            config, scorer = self.config, self.sampler.scorer
            sandbox = sandbox_of(self.item, config)
            ctx = ToolContext(f"{config.name}/{self.key}", scorer.judge if scorer else None, sandbox)
            try:
                async with asyncio.timeout_at(asyncio.get_running_loop().time() + config.item_seconds):
                    await ctx.prepare()
                return await self._in(ctx)
            finally:
                await _clean_up(ctx)
        except (SandboxError, ToolError) as error:
            return self._ended("failed", "sandbox", _told(error))
        except PolicyError as error:  # the policy cannot even open a conversation
            self.sampler.policy.health.failed(error)
            return self._not_answered(error)
        except TimeoutError:
            return self._ended("failed", "sandbox", f"not ready after {self.config.item_seconds:g} seconds")
        except Exception as error:  # a bug, of ours or of an environment: one sample's, and the batch goes on
            log.warning("unexpected %s", type(error).__name__, exc_info=True)
            return self._ended("failed", "internal", _told(error))

    async def _in(self, ctx: ToolContext) -> Outcome:
        """The sample in its sandbox."""
        scorer, policy = self.sampler.scorer, self.sampler.policy
        task = scorer.task(self.item) if scorer else None
        if scorer and task:
            await scorer.env.setup(task, ctx)
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
            tools = self.sampler.schemas(self.toolsets)
            async with policy.open(self.key, tools, self.sampling, bounds=bounds) as self.session:
                self.result = await self._loop(context)
            broken = next((call for call in self.result.calls if call.error_type == "sandbox"), None)
            if broken is not None:
                return self._ended("failed", "sandbox", f"{broken.name}: {broken.result[:300]}")
            return await self._judged(ctx, context)
        finally:
            if scorer and task:
                async with asyncio.timeout(CLEANUP_SECONDS):
                    await scorer.env.teardown(task, ctx)

    async def _loop(self, context: CallContext) -> LoopResult:
        limits = Limits(self.config.max_turns, self.config.max_tokens, self.deadline)
        if self.config.agent != "terminal":
            return await agent_loop.run(self.session, self.sent, context, limits)

        async def before_request(messages: list[Message]) -> agent_loop.Stop | None:
            return terminal_agent.stop_of(context)

        return await agent_loop.run(self.session, self.sent, context, limits, before_request=before_request)

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
        if self.sampler.scorer:
            try:
                score = await self.sampler.scorer.score(self.sampler.scorer.task(self.item), result, ctx)
            except Exception as error:  # the answer is paid for, and kept without a score
                log.warning("%s: not scored: %s", self.key, _told(error))
                marks.add("unscored")
        return self._ended("done", score=score, marks=marks, answer=answer)

    def _not_answered(self, error: PolicyError) -> Outcome:
        """The provider failed: this conversation, or altogether."""
        down = self.sampler.policy.health.is_down
        return self._ended("open" if down else "failed", "provider", _told(error))

    def _ended(self, state: Any, reason: str | None = None, error: str | None = None, **more: Any) -> Outcome:
        result, usage = self.result, self.usage()
        row, answered = None, bool(result and len(result.messages) > len(self.sent))
        if result and (answered or usage.requests or usage.dollars):
            asked = Asked(
                self.key,
                self.sampler.policy.name,
                {k: v for k, v in asdict(self.sampling).items() if v is not None},
                self.config.seed,
                self.toolsets,
                self.sampler.schemas(self.toolsets),
                self.item.metadata,
            )
            messages = self.stored + result.messages[len(self.sent) :]
            row = sample_row(asked, messages, result, usage, self.sampler.cost(usage), **more)
        attempts = self.session.attempts if reason == "provider" and result else self.attempt
        return Outcome(self.key, state, row, reason, error, max(1, attempts), answered)

    def usage(self) -> Usage:
        """Of this attempt and those before it."""
        used = self.earlier + self.tally.lost
        if self.result:
            used += self.result.usage
        used.dollars = self.earlier.dollars + self.tally.dollars
        return used


def _sampling(config: BatchConfig, key: str) -> Sampling:
    """Each sample has a seed of its own, or equal prompts would get equal answers."""
    digest = blake2b(f"{config.seed}/{key}".encode(), digest_size=4).digest()
    return Sampling(
        temperature=config.temperature,
        max_tokens=config.max_output_tokens,
        top_p=config.top_p,
        seed=int.from_bytes(digest) >> 1,
        reasoning_effort=config.reasoning_effort,
    )


def _with_system(text: str, messages: list[Message]) -> list[Message]:
    """A conversation with a text before all else: in the system message that it has, or in one of its own."""
    first = messages[0]
    if first["role"] != "system":
        return [system(text), *messages]
    return [system(f"{text}\n\n{first['content'] or ''}"), *messages[1:]]


async def _clean_up(ctx: ToolContext) -> None:
    try:
        async with asyncio.timeout(CLEANUP_SECONDS):
            await ctx.cleanup()
    except Exception as error:  # what was answered is worth more than a clean end
        log.warning("%s: the sandbox did not end: %s", ctx.task_id, _told(error))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
