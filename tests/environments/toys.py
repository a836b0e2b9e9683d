"""Small environments and policies for the tests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from environments.base import Environment, EnvironmentConfig, Reward, Rollout, Split, Task
from environments.policies.base import Completion, FinishReason, Sampling, Usage
from environments.tool_context import ToolContext
from rl_cli.core.messages import Message, assistant, user


class Countdown(Environment):
    """Task n asks for n; what a rollout answers is its reward. Notes what happened to it."""

    name = "countdown"
    description = "Answers with a number."

    def __init__(self, config: EnvironmentConfig | None = None) -> None:
        super().__init__(config or EnvironmentConfig())
        self.events: list[tuple[str, str]] = []

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        return (Task(f"countdown/{n}", {"n": n}) for n in range(3))

    def prompt(self, task: Task) -> list[Message]:
        return [user(str(task.data["n"]))]

    def toolsets(self, rng: random.Random) -> tuple[str, ...]:
        return ("math",) if rng.random() < 0.5 else ()

    async def setup(self, task: Task, ctx: ToolContext) -> None:
        self.events.append(("setup", ctx.task_id))

    async def teardown(self, task: Task, ctx: ToolContext) -> None:
        self.events.append(("teardown", ctx.task_id))

    async def reward(self, task: Task, rollout: Rollout, ctx: ToolContext) -> Reward:
        """What was answered."""
        assert rollout.result is not None
        return Reward(float(rollout.result.final_text))


class Answering:
    """A policy that answers by a function of the rollout's id, which may raise or wait."""

    name = "test/answering"

    def __init__(self, answer: Callable[[str], Any]) -> None:
        self.answer = answer
        self.opened: list[tuple[str, int]] = []
        self.open_now = 0
        self.most_open = 0

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: Any = None,
        bounds: Any = None,
    ) -> AsyncIterator[Answering]:
        self.opened.append((rollout_id, len(tools)))
        self.open_now += 1
        self.most_open = max(self.most_open, self.open_now)
        session = Answering(self.answer)
        session.name = rollout_id
        try:
            yield session
        finally:
            self.open_now -= 1

    async def complete(self, new_messages: list[Message]) -> Completion:
        await asyncio.sleep(0)
        answer = self.answer(self.name)
        if asyncio.iscoroutine(answer):
            answer = await answer
        return Completion(
            assistant(str(answer)), FinishReason.STOP, Usage(input_tokens=1, output_tokens=1, requests=1)
        )
