"""Policy: a chat endpoint that speaks OpenAI's Chat Completions (OpenAI, OpenRouter, vLLM, Ollama, ...).

It gives no tokens. A session is one conversation: it keeps what it was given, and a completion that fails
leaves it as it was, so that the same messages can be given again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from environments.policies.base import (
    Bounds,
    Completion,
    ContextOverflow,
    OnDelta,
    PolicyError,
    Sampling,
    Usage,
)
from environments.policies.endpoints.answer_limit import AnswerLimit
from environments.policies.endpoints.attempts import Progress, Request, WaitPolicy, with_retries
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.errors import CutStream, Refusal, StreamedError, classify
from environments.policies.endpoints.sse import DONE, EventStream
from environments.policies.endpoints.token_estimate import message_tokens, request_tokens
from environments.policies.openai.client import open_client
from environments.policies.openai.request import (
    Dialect,
    adapted,
    dialect_of,
    max_output,
    request_of,
    wire_message,
)
from environments.policies.openai.stream import Assembled, Assembly
from rl_cli.core.messages import Message

if TYPE_CHECKING:
    from openai import AsyncOpenAI

ASSUMED_OUTPUT = 8192
"""Tokens that are reserved for an answer that nothing limits."""
END_SECONDS = 0.3
"""How long to wait for the end of an answer after its last event."""
LEAST_OUTPUT = 512
"""Tokens of an answer without which it makes no sense to ask."""

log = logging.getLogger(__name__)


class OpenAIChatPolicy:
    """Sessions learn from one another what the endpoint refuses.

    Args:
        endpoint: The model and where it is.
        wait: How often and how long it is tried.
    """

    def __init__(self, endpoint: Endpoint, wait: WaitPolicy | None = None) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.window = endpoint.window
        """Tokens; None where it is not known."""
        self.wait = wait or WaitPolicy()
        self.dialect = dialect_of(endpoint)
        self._shared: AsyncOpenAI | None = None
        self.assumed_output = ASSUMED_OUTPUT

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AsyncIterator[OpenAIChatSession]:
        client = self._shared or open_client(self.endpoint)
        try:
            yield OpenAIChatSession(self, client, rollout_id, tools, sampling, on_delta, bounds or Bounds())
        finally:
            if client is not self._shared:
                await client.close()

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[None]:
        async with open_client(self.endpoint) as self._shared:
            try:
                yield
            finally:
                self._shared = None


class OpenAIChatSession:
    def __init__(
        self,
        policy: OpenAIChatPolicy,
        client: AsyncOpenAI,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None,
        bounds: Bounds,
    ) -> None:
        self._policy, self._client, self._rollout_id = policy, client, rollout_id
        self._tools, self._sampling, self._bounds = tools, sampling, bounds
        self._on_delta = on_delta or (lambda delta: None)
        self._wire: list[dict[str, Any]] = []
        self._call_ids: set[str] = set()
        self._tokens = request_tokens([], tools)

    async def complete(self, new_messages: list[Message]) -> Completion:
        """One assistant message.

        Raises:
            PolicyError: Or one of its kinds; the conversation is as it was before.
        """
        endpoint = self._policy.endpoint
        wire = self._wire + [wire_message(message, endpoint) for message in new_messages]
        taken = self._call_ids | {c["id"] for m in new_messages for c in m.get("tool_calls", [])}
        tokens = self._tokens + sum(message_tokens(message) for message in new_messages)
        answer, usage = await self._ask(wire, taken, tokens)
        message = answer.message
        if "provider_state" in message:
            message["provider_state"]["openai"]["model"] = endpoint.name
        self._wire = [*wire, wire_message(message, endpoint)]
        self._call_ids = taken | {call["id"] for call in message.get("tool_calls", [])}
        self._tokens = tokens + message_tokens(message)
        return Completion(message, answer.finish_reason, usage, call_errors=answer.call_errors)

    async def _ask(self, wire: list[dict[str, Any]], taken: set[str], tokens: int) -> tuple[Assembled, Usage]:
        """The answer; asked again in another dialect as long as refusals teach something new."""
        endpoint, policy, metered = self._policy.endpoint, self._policy, self._bounds.meter is not None
        asked = max_output(endpoint, self._sampling)
        limit = asked or _fitting(policy.assumed_output, tokens, policy.window)
        sampling = self._sampling
        while True:
            dialect = policy.dialect
            if metered:  # what is reserved is what the endpoint may answer
                sampling = replace(self._sampling, max_tokens=limit)
            request = request_of(endpoint, dialect, wire, self._tools, sampling, self._rollout_id)
            kept = limit if metered or (asked and dialect.unlimited) else None

            async def send(
                progress: Progress, request: dict[str, Any] = request, kept: int | None = kept
            ) -> tuple[Assembled, Usage]:
                answer = await self._send(request, taken, progress, AnswerLimit(kept))
                return answer, _counted(answer, tokens)

            try:
                return await with_retries(
                    send,
                    lambda error: classify(error, endpoint),
                    Request(policy.name, tokens, limit),
                    self._bounds,
                    policy.wait,
                    self._on_delta,
                )
            except (Refusal, ContextOverflow) as error:
                learnt = self._learnt(error, dialect, request)
                smaller = None if asked or not metered else _smaller(limit, error)
                if learnt is not None:
                    log.info("%s takes requests differently: %s", policy.name, learnt)
                    policy.dialect = learnt
                elif smaller is not None:
                    if tokens < limit:  # it is the endpoint's window that is small
                        policy.assumed_output = min(policy.assumed_output, smaller)
                    limit = smaller
                elif isinstance(error, Refusal):
                    raise _explained(error, endpoint) from error.__cause__
                else:
                    raise

    def _learnt(self, error: PolicyError, before: Dialect, request: dict[str, Any]) -> Dialect | None:
        """The dialect to ask again in; None where the refusal teaches nothing."""
        if not isinstance(error, Refusal):
            return None
        if self._policy.dialect != before:
            return self._policy.dialect  # another session has learnt in the meantime
        return adapted(before, error.said, request)

    async def _send(
        self, request: dict[str, Any], taken: set[str], progress: Progress, kept: AnswerLimit
    ) -> Assembled:
        """One attempt. What is streamed is shown at once."""
        limit = request.get("max_completion_tokens") or request.get("max_tokens")
        assembly = Assembly(self._policy.endpoint.model, self._tools, taken, limit)
        if not request["stream"]:
            progress.output_tokens = limit or ASSUMED_OUTPUT  # a lost answer may have been that long
        create = self._client.chat.completions.with_streaming_response.create
        async with create(**_as_it_is(request)) as response:
            if "json" in (kind := response.headers.get("content-type", "")) and "ndjson" not in kind:
                self._show(assembly, _loads(await response.text()))
                assembly.done()
            else:  # some servers say text/plain of their events
                await self._read_events(response, assembly, progress, kept)
        answer = assembly.result()
        for delta in assembly.rest():
            self._on_delta(delta)
        return answer

    async def _read_events(
        self, response: Any, assembly: Assembly, progress: Progress, kept: AnswerLimit
    ) -> None:
        events = EventStream()
        try:
            pieces = response.iter_bytes()
            async for piece in pieces:
                for data in events.feed(piece):
                    if data.strip() == DONE:
                        assembly.done()
                        await _to_the_end(pieces)
                        return
                    self._show(assembly, _loads(data))
                    if kept.is_passed(assembly.count):
                        log.info("%s answers more than it may: cut", self._policy.name)
                        assembly.cut()
                        return
            for data in events.end():
                if data.strip() == DONE:
                    assembly.done()
                else:
                    self._show(assembly, _loads(data))
        except Exception as error:
            if not assembly.is_finished:  # what breaks after the finish reason takes nothing away
                raise
            log.debug("%s broke off after its answer: %r", self._policy.name, error)
        finally:
            progress.output_tokens = assembly.count.tokens

    def _show(self, assembly: Assembly, chunk: Any) -> None:
        for delta in assembly.feed(chunk):
            self._on_delta(delta)


async def _to_the_end(pieces: AsyncIterator[bytes]) -> None:
    """Only a connection whose answer was read to its end can be used again."""
    with suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            async for _ in pieces:
                pass


def _as_it_is(request: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the SDK's call that make it send a request as it is.

    It would go through all of it by its types, which is a third of what a request costs.
    """
    return {"model": request["model"], "messages": (), "extra_body": request}


def _counted(answer: Assembled, estimate: int) -> Usage:
    """What the endpoint counted, and estimates where it did not."""
    said = answer.usage or Usage(requests=1)
    output = max(message_tokens(answer.message), answer.received_tokens)
    return replace(
        said,
        input_tokens=said.input_tokens or estimate,
        output_tokens=said.output_tokens or output,
    )


def _fitting(assumed: int, tokens: int, window: int | None) -> int:
    """A limit for an answer that nobody limited: no more than the window leaves."""
    return assumed if window is None else min(assumed, max(window - tokens, LEAST_OUTPUT))


def _smaller(limit: int, error: PolicyError) -> int | None:
    """A limit to try instead, where what was refused may be the one that we chose."""
    text = error.said.text if isinstance(error, Refusal) else str(error)
    about = re.search(rf"\b{limit}\b|max_(?:completion_|new_)?tokens", text)
    return max(limit // 4, LEAST_OUTPUT) if about and limit > LEAST_OUTPUT else None


def _loads(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        if '"error"' in text[:20]:  # an error with quotes in its text, put into JSON by hand
            raise StreamedError(text) from None
        raise CutStream("it is not JSON") from None


def _explained(refusal: Refusal, endpoint: Endpoint) -> PolicyError:
    """The refusal, with the setting that it is about."""
    text = refusal.said.text
    fields = ("reasoning_content", "reasoning", "thinking")
    named = next((field for field in (endpoint.reasoning_field, *fields) if field and field in text), None)
    if named is None:
        return refusal
    setting = f"endpoints.{endpoint.provider}.reasoning_field"
    if endpoint.reasoning_field:
        sent = endpoint.reasoning_field
        hint = f"reasoning was sent back in '{sent}': name the right field in {setting}, or unset it"
    else:
        hint = f"it may want reasoning back: set {setting} to '{named}'"
    return PolicyError(f"{refusal}; {hint}")
