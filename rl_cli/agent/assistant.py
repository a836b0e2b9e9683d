"""The assistant of one session: takes requests, runs the loop with the rl tools, records what happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.agent_loop import (
    AssistantMessage,
    CallRecord,
    Limits,
    LoopEvent,
    LoopResult,
    StopReason,
    ToolFinished,
    ToolStarted,
    run,
)
from environments.policies.base import Bounds, OnDelta, Policy, Sampling, Usage
from rl_cli.agent.policy_session import PolicySession
from rl_cli.agent.session_file import SessionFile
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, system, user
from tools.dispatcher import CallContext, tool_schemas, tool_specs

if TYPE_CHECKING:
    from tools.dispatcher import ApprovalRequest, Verdict

TOOLSETS = ("rl",)
MAX_TURNS = 200
"""A day of half-hourly checks is about 50 turns."""
NOT_KEPT = frozenset({"refused"})
"""Keys of the state that are of one turn."""


@dataclass(frozen=True)
class TurnResult:
    """How one request was answered."""

    stop: StopReason
    reason: str | None
    """One line for a person, where the turn did not simply finish."""
    text: str
    """The model's last words of this turn; "" where there are none."""
    calls: list[CallRecord]
    usage: Usage
    refused: bool
    """A call was refused: by a rule, the person, or a budget."""


@dataclass
class Assistant:
    """Answers the requests of one session, one at a time, all in one event loop."""

    policy: Policy
    home: Path
    session: SessionFile
    approve: Callable[[ApprovalRequest], Awaitable[Verdict]]
    on_event: Callable[[LoopEvent], None]
    on_progress: Callable[[dict[str, Any]], None]
    interrupted: asyncio.Event
    """Set: the turn ends soon. Whoever set it clears it before the next turn."""
    on_delta: OnDelta | None = None
    on_notice: Callable[[str], None] = lambda text: None
    """One line for the person: what the assistant did to the conversation by itself."""
    seed: int | None = None
    window: int | None = None
    """The model's context window in tokens; None: there is no limit (operator, scripts)."""
    bounds: Callable[[], Bounds] = Bounds
    """Asked at the start of each turn: who pays, and until when."""
    state: dict[str, Any] = field(default_factory=dict)
    """CallContext.state of all calls: draft, run_id, seed, ... Restored from the session."""

    def __post_init__(self) -> None:
        self.state.update(self.session.history.state)
        if self.seed is not None:
            self.state["seed"] = self.seed
        self._kept = PolicySession()

    async def turn(self, request: str) -> TurnResult:
        """Runs the loop on one request until the policy has nothing more to call.

        Raises:
            OSError: The session file cannot be written.
            CancelledError: The task was cancelled; the session can be gone on with.
        """
        bounds = self.bounds()
        self.state["refused"] = False
        prompt = self._system()
        if self.policy.name != self.session.history.model:
            self.session.record("model", model=self.policy.name)
        if prompt["content"] != self.session.history.system:
            self.session.record("system", content=prompt["content"])
        self.session.record("message", message=user(repair_surrogates(request)))
        try:
            result = await self._run(prompt, bounds)
        except asyncio.CancelledError:
            self.session.record("end", stop=StopReason.INTERRUPTED.value, error="cancelled")
            raise
        self.session.record("end", stop=result.stop.value, error=result.error)
        refused = bool(self.state["refused"])
        return TurnResult(result.stop, result.error, result.final_text, result.calls, result.usage, refused)

    def change_model(self, policy: Policy, window: int | None) -> None:
        """Lets another model answer from the next turn on."""
        self.policy, self.window = policy, window

    async def compact(self) -> str:
        """Shortens the conversation as the person asked for. Returns one line that says what was done."""
        return "nothing to summarise yet"

    async def close(self) -> None:
        """Ends the policy's session and gives the session file back."""
        await self._kept.close()
        self.session.close()

    async def _run(self, prompt: Message, bounds: Bounds) -> LoopResult:
        messages = [prompt, *self.session.history.messages()]
        new = await self._kept.take(
            messages,
            (self.policy, bounds, prompt["content"]),
            lambda: self.policy.open(
                self.session.id,
                tool_schemas(TOOLSETS),
                Sampling(temperature=None),
                on_delta=self.on_delta,
                bounds=bounds,
            ),
        )
        return await run(self._kept, new, self._context(bounds), Limits(max_turns=MAX_TURNS), self._on_event)

    def _context(self, bounds: Bounds) -> CallContext:
        return CallContext(
            caller="chat",
            task_id=self.session.id,
            toolsets=TOOLSETS,
            approve=self.approve,
            deadline=bounds.deadline,
            state=self.state,
            on_progress=self.on_progress,
            interrupted=self.interrupted,
            overflow_dir=self.session.folder,
        )

    def _on_event(self, event: LoopEvent) -> None:
        """Everything is on record before it is shown or, for a call, before it runs."""
        if isinstance(event, AssistantMessage):
            self.session.record("message", message=event.message)
        elif isinstance(event, ToolStarted):
            spec = tool_specs(TOOLSETS).get(event.call["function"]["name"])
            lasting = spec is not None and spec.risk in ("execute", "spend")
            self.session.record("call", fsync=lasting, call=event.call)
        elif isinstance(event, ToolFinished):
            record = event.record
            self._keep_state()
            self.session.record(
                "result",
                call_id=record.id,
                name=record.name,
                ok=record.ok,
                seconds=round(record.seconds, 3),
                content=record.result,
            )
        self.on_event(event)

    def _keep_state(self) -> None:
        """Before the result of the call that changed it: what is promised by a result is there."""
        state = {key: value for key, value in self.state.items() if key not in NOT_KEPT}
        if state != self.session.history.state:
            self.session.record("state", state=state)

    def _system(self) -> Message:
        from prompts.loader import render

        return system(render("operator", home=str(self.home), date=date.today().isoformat()))
