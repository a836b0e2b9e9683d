"""The assistant answers one request: system prompt, the rl tools, the loop, a transcript."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.agent_loop import (
    AssistantMessage,
    Limits,
    LoopEvent,
    LoopResult,
    ToolFinished,
    ToolStarted,
    run,
)
from environments.policies.base import Policy, Sampling
from rl_cli.agent.transcript import Transcript
from rl_cli.core.messages import Message, system, user
from tools.dispatcher import CallContext, tool_schemas

if TYPE_CHECKING:
    from tools.dispatcher import ApprovalRequest, Verdict

TOOLSETS = ("rl",)
MAX_TURNS = 200
"""A day of half-hourly checks is about 50 turns."""


@dataclass
class Assistant:
    """Answers requests with a policy and the operations tools."""

    policy: Policy
    home: Path
    approve: Callable[[ApprovalRequest], Awaitable[Verdict]]
    on_event: Callable[[LoopEvent], None]
    on_progress: Callable[[dict[str, Any]], None]
    interrupted: asyncio.Event
    seed: int | None = None
    state: dict[str, Any] = field(default_factory=dict)

    async def answer(self, request: str) -> LoopResult:
        """Runs the loop on one request until the policy has nothing more to call."""
        transcript = Transcript(self.home, self.policy.name)
        if self.seed is not None:
            self.state["seed"] = self.seed
        context = CallContext(
            caller="chat",
            task_id=transcript.id,
            toolsets=TOOLSETS,
            approve=self.approve,
            state=self.state,
            on_progress=self.on_progress,
            interrupted=self.interrupted,
            overflow_dir=self.home / "sessions" / transcript.id,
        )
        messages: list[Message] = [*self._system(), user(request)]
        for message in messages:
            transcript.record("message", message=message)

        def on_event(event: LoopEvent) -> None:
            if isinstance(event, AssistantMessage):
                transcript.record("message", message=event.message)
            elif isinstance(event, ToolStarted):
                transcript.record("call", call=event.call)
            elif isinstance(event, ToolFinished):
                record = event.record
                transcript.record(
                    "result", call_id=record.id, name=record.name, ok=record.ok, content=record.result
                )
            self.on_event(event)

        async with self.policy.open(
            transcript.id, tool_schemas(TOOLSETS), Sampling(temperature=None)
        ) as session:
            result = await run(session, messages, context, Limits(max_turns=MAX_TURNS), on_event)
        transcript.record("end", stop=result.stop.value, error=result.error)
        return result

    def _system(self) -> list[Message]:
        from prompts.loader import render

        return [system(render("operator", home=str(self.home), date=date.today().isoformat()))]
