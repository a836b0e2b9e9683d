"""The assistant of one session: takes requests, runs the loop with the rl tools, keeps within the window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.agent_loop import (
    AssistantMessage,
    Limits,
    LoopEvent,
    LoopResult,
    Stop,
    StopReason,
    run,
)
from environments.policies.base import Bounds, Completion, Delta, OnDelta, Policy, Sampling, Usage
from rl_cli.agent.guards import REASONS, TRIES, in_a_circle, is_empty, still_refused, was_cut
from rl_cli.agent.judge import ModelJudge
from rl_cli.agent.models import OPERATOR
from rl_cli.agent.policy_session import PolicySession
from rl_cli.agent.recorder import Recorder
from rl_cli.agent.session_file import SessionFile
from rl_cli.agent.shortening import Shortening, shorten_conversation
from rl_cli.agent.turns import Tries, TurnResult
from rl_cli.agent.window import is_full, result_limit, with_bounded_results
from rl_cli.core.cuts import one_line
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, assistant, system, user
from tools.dispatcher import CallContext, tool_schemas
from tools.spec import FINAL_ANSWER

if TYPE_CHECKING:
    from rl_cli.agent.workspace import Workspace
    from tools.dispatcher import ApprovalRequest, Verdict

TOOLSETS = ("rl", "wandb", "data")
"""Those of every conversation; a workspace adds its own."""
STARTS = {"rl_start_training": "run_id", "data_generate": "batch"}
"""Tool -> the key of the state that holds what it started last."""
MAX_TURNS = 200
"""A day of half-hourly checks is about 50 turns."""


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
    toolsets: tuple[str, ...] = TOOLSETS
    workspace: Workspace | None = None
    """Where its own commands and files are, with the toolsets for them; None: it has none."""
    state: dict[str, Any] = field(default_factory=dict)
    """CallContext.state of all calls: draft, run_id, seed, ... Restored from the session."""

    def __post_init__(self) -> None:
        if self.workspace:
            self.move_into(self.workspace)
        self._live: dict[str, Any] = {}
        self.state.update(self.session.history.state)
        if self.seed is not None:
            self.state["seed"] = self.seed
        for call in self.session.history.unanswered():  # it may have started another one: then the newest
            self.state.pop(STARTS.get(call["function"]["name"], ""), None)
        self._judge: ModelJudge | None = None
        self._kept = PolicySession()
        self._recorder: Recorder | None = None

    async def turn(self, request: str) -> TurnResult:
        """Runs the loop on one request until the policy has nothing more to call.

        Raises:
            OSError: The session file cannot be written.
            CancelledError: The task was cancelled.
            PolicyError: The policy cannot be opened.

        Whatever is raised, the session can be gone on with.
        """
        bounds, prompt = self.bounds(), self._system()
        self.state.pop(FINAL_ANSWER, None)  # of a turn that was cut off
        self._judge = self.judge(request)
        recorder = self._recorder = Recorder(self.session, self.state, self.toolsets)
        if self.policy.name != self.session.history.model:
            self.session.record("model", model=self.policy.name)
        if prompt["content"] != self.session.history.system:
            self.session.record("system", content=prompt["content"])
        recorder.keep_state()
        self.session.record(
            "message",
            message=user(repair_surrogates(request)),
            model=self.policy.name,
            base_url=self.state.get("base_url"),
        )
        try:
            result = await self._answer(prompt, bounds, recorder)
        except asyncio.CancelledError:
            recorder.cut_off()
            self.session.record("end", stop=StopReason.INTERRUPTED.value, error="cancelled")
            raise
        except Exception as error:
            with suppress(OSError):  # it may be the very reason
                recorder.cut_off()
                self.session.record(
                    "end", stop=StopReason.ERROR.value, error=f"{type(error).__name__}: {error}"
                )
            raise
        reason = result.error or REASONS.get(result.stop)
        self.session.record("end", stop=result.stop.value, error=reason)
        refused = still_refused(recorder.calls)
        return TurnResult(result.stop, reason, recorder.text, recorder.calls, result.usage, refused)

    async def compact(self) -> str:
        """Summarises older turns as the person asked for; `on_notice` is told what was done.

        Returns:
            Why nothing was done, in one line; "" where something was.
        """
        done = await self._shorten(self.bounds(), whole_turns=True)
        return "" if done else "there is nothing to summarise yet"

    def judge(self, request: str = "") -> ModelJudge | None:
        """Who judges runs for this conversation; None: the built-in operator, who does it at each check.

        Args:
            request: What the person asked for.
        """
        if self.policy.name == OPERATOR:
            return None
        return ModelJudge(self.policy, self.bounds, self.session.id, request)

    def move_into(self, workspace: Workspace) -> None:
        """Its own commands and files are there from the next turn on."""
        self.workspace = workspace
        self.toolsets = (*self.toolsets, *workspace.toolsets)

    def change_model(self, policy: Policy, window: int | None) -> None:
        """Lets another model answer from the next turn on."""
        self.policy, self.window = policy, window

    async def close(self) -> None:
        """Ends the policy's session and what runs in the sandbox, and gives the session file back."""
        try:
            await self._kept.close()
            if self.workspace:
                await self.workspace.sandbox.stop()
        finally:
            self.session.close()

    async def _answer(self, prompt: Message, bounds: Bounds, recorder: Recorder) -> LoopResult:
        """Runs the loop; again where a reply was no reply, or the conversation had to be shortened."""
        tries, usage = Tries(), Usage()
        while True:
            result = await self._loop(prompt, bounds, recorder, tries)
            bounds = self.bounds() if result.stop is StopReason.DEADLINE else bounds
            recorder.cut_off()
            recorder.not_run(result.messages)
            usage += result.usage
            again = await self._again(result, bounds, tries)
            usage += again if isinstance(again, Usage) else Usage()
            if again is None:
                result.usage = usage + (self._judge.usage if self._judge else Usage())
                return result

    async def _loop(self, prompt: Message, bounds: Bounds, recorder: Recorder, tries: Tries) -> LoopResult:
        limit = result_limit(self.window)
        schemas = tool_schemas(self.toolsets)

        async def before_request(_: list[Message]) -> Stop | None:
            if (answer := self.state.pop(FINAL_ANSWER, None)) is not None:
                tries.answered = True
                on_event(AssistantMessage(assistant(str(answer))))
                recorder.keep_state()
                return Stop(StopReason.FINISHED)
            if stop := in_a_circle(recorder.calls):
                return stop
            may = tries.may_shorten and self.window is not None
            if may and is_full(self._messages(prompt, limit), schemas, self.window):
                tries.full = True
                return Stop(StopReason.OVERFLOW)
            return None

        def on_event(event: LoopEvent) -> None:
            recorder(event)
            self.on_event(event)

        new = await self._kept.take(
            self._messages(prompt, limit),
            (self.policy, bounds, prompt["content"], limit),
            lambda: self.policy.open(
                self.session.id, schemas, Sampling(temperature=None), self._heard, bounds
            ),
        )
        context = CallContext(
            caller="chat",
            task_id=self.session.id,
            toolsets=self.toolsets,
            approve=self.approve,
            deadline=bounds.deadline,
            result_limit=limit,
            overflow_dir=self.session.folder,
            state=self.state,
            live=self._live,
            sandbox=self.workspace.sandbox if self.workspace else None,
            file_roots=self.workspace.file_roots if self.workspace else (),
            on_progress=self.on_progress,
            interrupted=self.interrupted,
            judge=self._judge,
        )
        limits = Limits(max_turns=max(0, MAX_TURNS - recorder.replies))
        return await run(self._kept, new, context, limits, on_event, before_request)

    def _heard(self, delta: Delta) -> None:
        """A policy's session outlives the turn in which it was opened."""
        if self._recorder:
            self._recorder.on_delta(delta)
        if self.on_delta:
            self.on_delta(delta)

    async def _again(self, result: LoopResult, bounds: Bounds, tries: Tries) -> Usage | None:
        """Prepares another go of the loop, and returns what that took; None where the turn ends here."""
        if tries.answered:
            return None
        if result.stop is StopReason.OVERFLOW:
            return await self._after_overflow(result, bounds, tries)
        if result.stop is StopReason.DEADLINE and _has_time(bounds):
            return Usage()  # the person took long to answer a question, which is not the assistant's time
        last = self._kept.last
        if last and was_cut(last, result.stop):
            return self._after_cut(result, last, tries)
        if last and result.stop is StopReason.FINISHED and is_empty(last.message):
            tries.empty += 1
            self._kept.spoil()  # it holds the empty message, which the history does not
            if tries.empty < TRIES:
                return Usage()
            result.stop = StopReason.STUCK
            result.error = f"the turn was ended: the model answered nothing, {TRIES} times"
        return None

    async def _after_overflow(self, result: LoopResult, bounds: Bounds, tries: Tries) -> Usage | None:
        planned, tries.full = tries.full, False
        tries.overflows += not planned
        if tries.overflows > 1:
            result.error = f"even shortened, the conversation does not fit the model's window: {result.error}"
            return None
        done = await self._shorten(bounds)
        if done is None and not planned:
            result.error = f"one request alone does not fit the model's window: {result.error}"
            return None
        # Where shortening makes too little room, the server is asked all the same: our count is an estimate.
        tries.may_shorten = done is not None and done.halved
        return done.usage if done else Usage()

    def _after_cut(self, result: LoopResult, last: Completion, tries: Tries) -> Usage | None:
        from prompts.loader import render

        tries.cut += 1
        self._kept.spoil()
        why = one_line("; ".join(last.call_errors), 300) or "the output limit was reached"
        if tries.cut < TRIES:
            self.session.record("message", by="rl-cli", message=user(render("cut_off", why=why)))
            return Usage()
        result.error = (
            f"{TRIES} replies of the model ended before they were complete ({why}); ask for less at a time, "
            "or raise the endpoint's max_output_tokens"
        )
        result.stop = StopReason.TOKEN_LIMIT if result.stop is StopReason.TOKEN_LIMIT else StopReason.STUCK
        return None

    async def _shorten(self, bounds: Bounds, whole_turns: bool = False) -> Shortening | None:
        self._kept.spoil()
        return await shorten_conversation(
            self.session,
            self.policy,
            self.window,
            self.toolsets,
            bounds,
            self.interrupted,
            whole_turns,
            self.on_notice,
        )

    def _messages(self, prompt: Message, limit: int) -> list[Message]:
        return [prompt, *with_bounded_results(self.session.history.messages(), limit)]

    def _system(self) -> Message:
        from prompts.loader import render

        known = " ".join(self.workspace.notes) if self.workspace else ""
        return system(render("operator", home=str(self.home), date=date.today().isoformat(), workspace=known))


def _has_time(bounds: Bounds) -> bool:
    return bounds.deadline is None or bounds.deadline > time.monotonic()
