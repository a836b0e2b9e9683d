"""The model in this process as a policy: token-exact, one growing token sequence per session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from environments.policies.base import (
    Bounds,
    Completion,
    FinishReason,
    OnDelta,
    Sampling,
    TextDelta,
    TokenRecord,
    Usage,
)
from environments.policies.call_ids import fresh_id
from environments.policies.engine import Engine, Request
from environments.policies.renderers import Renderer
from environments.policies.turn_text import call_errors
from rl_cli.core.messages import Message, assistant, tool_call

MAX_NEW_TOKENS = 512
"""Of one completion, where the sampling does not say."""


class InProcessPolicy:
    """Answers with an Engine's model.

    Sampling.seed is not used: torch's global random state decides. Sampling.top_p must be 1 or None, because
    the recorded logprobs are those of the full distribution.
    """

    def __init__(self, engine: Engine, renderer: Renderer, name: str = "in-process/model") -> None:
        self.engine = engine
        self.renderer = renderer
        self.name = name

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AsyncIterator[InProcessSession]:
        """Raises ValueError for a top_p below 1."""
        if sampling.top_p not in (None, 1.0):
            raise ValueError("the in-process policy samples from the full distribution: top_p must be 1")
        with self.engine.seat() as seat:
            yield InProcessSession(self.engine, seat, self.renderer, tools, sampling, on_delta)


class InProcessSession:
    def __init__(
        self,
        engine: Engine,
        seat: int,
        renderer: Renderer,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None,
    ) -> None:
        self._engine = engine
        self._seat = seat
        self._renderer = renderer
        self._tools = tools
        self._on_delta = on_delta
        self._stop_ids = renderer.stop_ids(tools)
        self._temperature = 1.0 if sampling.temperature is None else sampling.temperature
        self._max_tokens = sampling.max_tokens or MAX_NEW_TOKENS
        self._messages: list[Message] = []
        self._call_ids: set[str] = set()
        self.record = TokenRecord()

    async def complete(self, new_messages: list[Message]) -> Completion:
        """Raises PolicyError where the model fails; the session is then as it was before."""
        record = self.record
        first = not self._messages
        if first:
            added = self._renderer.first(new_messages, self._tools)
        else:
            last_id = record.completion_ids[-1] if record.completion_ids else -1
            added = self._renderer.following(self._messages, new_messages, last_id, self._tools)
        before = (*record.prompt_ids, *record.completion_ids, *added)
        request = Request(before, self._max_tokens, self._stop_ids, self._temperature)
        sampled = await self._engine.sample(self._seat, request)
        if first:
            record.prompt_ids = added
        elif sampled.ids:
            record.completion_ids += added
            record.mask += [0] * len(added)
            record.logprobs += [0.0] * len(added)
        record.completion_ids += sampled.ids
        record.mask += [1] * len(sampled.ids)
        record.logprobs += sampled.logprobs

        parsed = self._renderer.read(sampled.ids, self._tools)
        calls = []
        for call in parsed.tool_calls:
            calls.append(tool_call(fresh_id(call.id, self._call_ids), call.name, call.arguments))
            self._call_ids.add(calls[-1]["id"])
        message = assistant(parsed.content, calls)
        if parsed.reasoning is not None:
            message["reasoning"] = parsed.reasoning
        self._messages += [*new_messages, message]
        if self._on_delta and parsed.content:
            self._on_delta(TextDelta(parsed.content))
        finish = FinishReason.TOOL_CALLS if calls and sampled.finish is FinishReason.STOP else sampled.finish
        usage = Usage(len(before), len(sampled.ids), 0, 1)
        return Completion(message, finish, usage, record, call_errors(parsed))
