"""`anthropic/...`: models behind the Messages API, Anthropic's own and those compatible with it.

The SDK makes the requests; what comes back is read from the wire (`anthropic_events`), since the SDK's
own reader loses events without a name and everything that a stream without an end had said.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from environments.policies.anthropic.events import events
from environments.policies.anthropic.history import PROVIDER
from environments.policies.anthropic.request import is_anthropic, origin_of, request_of
from environments.policies.anthropic.stream import MessageBuilder
from environments.policies.anthropic.text import TextReader
from environments.policies.base import (
    Bounds,
    Completion,
    ContextOverflow,
    OnDelta,
    Sampling,
    Usage,
)
from environments.policies.endpoints.answer_limit import AnswerLimit
from environments.policies.endpoints.attempts import Progress, Request, WaitPolicy, with_retries
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.errors import CutStream, Refusal, classify
from environments.policies.endpoints.token_estimate import request_tokens
from rl_cli.core.messages import Message

ANTHROPIC_URL = "https://api.anthropic.com"
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 600.0
"""A server that says nothing for so long is given up."""
LAST_WORDS_SECONDS = 3.0
"""How long to wait for what may follow a message that is complete."""
END_SECONDS = 0.3
"""How long to wait for the connection to end after the last event, so that it can be used again."""


class AnthropicPolicy:
    """One model; every session has its own client, unless they share one."""

    def __init__(self, endpoint: Endpoint, wait: WaitPolicy | None = None) -> None:
        self.endpoint = endpoint
        self.name = endpoint.name
        self.window = endpoint.window
        self._wait = wait or WaitPolicy()
        self._shared: Any = None

    @asynccontextmanager
    async def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AsyncIterator[AnthropicSession]:
        own = None if self._shared else _client(self.endpoint)
        client = own or self._shared
        try:
            yield AnthropicSession(
                client, self.endpoint, tools, sampling, on_delta, bounds or Bounds(), self._wait
            )
        finally:
            if own:
                await own.close()

    @asynccontextmanager
    async def sharing(self) -> AsyncIterator[None]:
        async with _client(self.endpoint) as self._shared:
            try:
                yield
            finally:
                self._shared = None


class AnthropicSession:
    def __init__(
        self,
        client: Any,
        endpoint: Endpoint,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None,
        bounds: Bounds,
        wait: WaitPolicy,
    ) -> None:
        self._client = client
        self._endpoint = endpoint
        self._tools = tools
        self._sampling = sampling
        self._on_delta = on_delta
        self._bounds = bounds
        self._wait = wait
        self._caching = True
        self._messages: list[Message] = []

    async def complete(self, new_messages: list[Message]) -> Completion:
        """Where it fails, `new_messages` are not kept.

        Raises:
            PolicyError: There is no answer; its subclasses are what a caller can do something about.
        """
        messages = [*self._messages, *new_messages]
        try:
            completion = await self._answer(messages)
        except Refusal as error:
            messages = self._mended(messages, error)
            completion = await self._answer(messages)
        self._messages = [*messages, completion.message]
        return completion

    def _mended(self, messages: list[Message], error: Refusal) -> list[Message]:
        """The messages to ask again with; raises where nothing can be done about the refusal."""
        if self._caching and "cache_control" in error.said.text:  # a compatible server without a cache
            self._caching = False
            return messages
        if _is_about_thinking(error) and any("provider_state" in message for message in messages):
            # The signatures are not this account's, or were damaged: the conversation goes on without them.
            return [_without_state(message) for message in messages]
        raise _with_setting(error, self._endpoint) from error

    async def _answer(self, messages: list[Message]) -> Completion:
        request = request_of(self._endpoint, messages, self._tools, self._sampling, self._caching)
        told = Request(self._endpoint.name, request_tokens(messages, self._tools), request["max_tokens"])
        taken = {call["id"] for message in messages for call in message.get("tool_calls", [])}

        async def send(progress: Progress) -> tuple[Completion, Usage]:
            own = is_anthropic(self._endpoint)
            text = TextReader(self._on_delta, self._endpoint.model, self._tools)
            builder = MessageBuilder(self._on_delta if own else text.show, taken)
            await self._receive(request, builder, progress)
            completion = builder.completion() if own else text.read(builder.completion(), taken)
            message = completion.message
            if builder.stop_reason == "model_context_window_exceeded" and not (
                message["content"] or message.get("tool_calls")
            ):
                raise ContextOverflow(f"the conversation fills the window of {self._endpoint.name}")
            if state := message.get("provider_state"):
                state[PROVIDER]["origin"] = origin_of(self._endpoint)
            return completion, _usage(builder.usage, told.input_tokens, progress)

        on_retry = self._on_delta or (lambda delta: None)
        what = partial(classify, endpoint=self._endpoint)
        completion, usage = await with_retries(send, what, told, self._bounds, self._wait, on_retry)
        return replace(completion, usage=usage)

    async def _receive(self, request: dict[str, Any], builder: MessageBuilder, progress: Progress) -> None:
        """Feeds the builder until the message is complete.

        Raises:
            CutStream: It ended before that.
        """
        kept = AnswerLimit(request["max_tokens"] if self._bounds.meter else None)
        send = self._client.messages.with_streaming_response.create
        try:
            async with (
                send(**request, stream=self._endpoint.stream) as response,
                aclosing(events(response)) as arriving,
            ):
                async for event in _patiently(arriving, builder):
                    builder.feed(event)
                    progress.output_tokens = builder.count.tokens
                    if kept.is_passed(builder.count):
                        builder.cut()
                        break
        except Exception:
            if not builder.complete:
                raise
            # Everything had been said; how the connection ended does not matter.
        if not builder.complete:
            raise CutStream("it ended before it was complete")


async def _patiently(events: AsyncIterator[Any], builder: MessageBuilder) -> AsyncIterator[Any]:
    """The events; not for ever once the builder has all it needs."""
    while True:
        patience = None
        if builder.complete:
            patience = END_SECONDS if builder.stopped else LAST_WORDS_SECONDS
        try:
            yield await asyncio.wait_for(anext(events), patience)
        except (StopAsyncIteration, TimeoutError):
            return


def _usage(said: Usage | None, input_estimate: int, progress: Progress) -> Usage:
    """What the server says it used; our estimates where it does not."""
    used = said or Usage(requests=1)
    return replace(
        used,
        input_tokens=used.input_tokens or input_estimate,
        output_tokens=used.output_tokens or progress.output_tokens,
    )


def _client(endpoint: Endpoint) -> Any:
    """The SDK's client. A compatible endpoint is sent the key in both headers that are in use."""
    import anthropic
    import httpx2

    from environments.policies.endpoints.guarded_http import guarded_client

    key = endpoint.api_key or "none"
    base_url = (endpoint.base_url or ANTHROPIC_URL).rstrip("/").removesuffix("/v1")  # the SDK adds it
    headers = dict(endpoint.headers)
    if not is_anthropic(endpoint):
        headers = {"x-api-key": key, **headers}
    timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    client = anthropic.AsyncAnthropic(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        timeout=timeout,
        default_headers=headers,
        http_client=guarded_client(anthropic.DefaultAsyncHttpxClient, endpoint, timeout),
    )
    if not is_anthropic(endpoint):  # what the SDK reads from the environment is nobody else's business
        client._custom_headers = headers
    return client


def _is_about_thinking(error: Refusal) -> bool:
    text = error.said.text
    return "thinking" in text and any(
        word in text for word in ("signature", "cannot be modified", "expected")
    )


def _without_state(message: Message) -> Message:
    kept = message.copy()
    kept.pop("provider_state", None)
    return kept


SETTINGS = {
    "thinking": "thinking",
    "output_config": "thinking",
    "effort": "thinking",
    "max_tokens": "max_output_tokens",
}
"""Field of a request -> the endpoint's setting that decides over it."""


def _with_setting(error: Refusal, endpoint: Endpoint) -> Refusal:
    """The same error, naming the setting that decides over the field that the server complains about."""
    setting = next((s for field, s in SETTINGS.items() if field in error.said.text), None)
    if setting is None:
        return error
    return Refusal(
        f"{error} (what is sent there: setting endpoints.{endpoint.provider}.{setting})", error.said
    )
