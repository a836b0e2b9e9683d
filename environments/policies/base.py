"""The contract between the loop and whatever answers: a policy opens sessions, they complete messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from rl_cli.core.messages import Message


class FinishReason(StrEnum):
    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    CONTENT_FILTER = "content_filter"
    DECLINED = "declined"
    """The policy knows that it did not do what it was asked to do, and says so in the message."""


@dataclass(frozen=True)
class Sampling:
    """How to sample. None leaves a setting to the endpoint."""

    temperature: float | None = 1.0
    """0 is greedy."""
    max_tokens: int | None = None
    """New tokens per completion."""
    top_p: float | None = None
    seed: int | None = None
    reasoning_effort: str | None = None
    """How long to think, in the endpoint's own words: low, medium, high, ..."""


@dataclass
class Usage:
    """Counts of tokens and requests; they add up."""

    input_tokens: int = 0
    """All of the prompt, those read from and written to a cache included."""
    output_tokens: int = 0
    cached_tokens: int = 0
    """Of input_tokens: read from the endpoint's prompt cache."""
    cache_write_tokens: int = 0
    """Of input_tokens: written to it."""
    requests: int = 0
    dollars: float = 0.0
    """What was settled with the meter; 0 where there is no meter."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.requests + other.requests,
            self.dollars + other.dollars,
        )


@dataclass
class TokenRecord:
    """The growing token sequence of one session (token-exact policies only).

    `prompt_ids` is what stood before the first sampled token. The other three have one entry per token after
    it: `mask` is 1 for a token that the policy sampled and 0 for one that the template or a tool inserted
    (its logprob is 0.0). Logprobs are natural, of the full vocabulary, after division by the temperature.
    """

    prompt_ids: list[int] = field(default_factory=list)
    completion_ids: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


@dataclass
class Completion:
    """What a policy answered."""

    message: Message
    finish_reason: FinishReason
    usage: Usage
    tokens: TokenRecord | None = None
    """The session's whole record so far (shared, it grows), or None where the endpoint gives no tokens."""
    call_errors: list[str] = field(default_factory=list)
    """Tool calls that were begun in the text and could not be read: one reason each."""


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer, as it is streamed."""

    text: str


@dataclass(frozen=True)
class ReasoningDelta:
    """A piece of the model's thinking, as it is streamed."""

    text: str


@dataclass(frozen=True)
class Retrying:
    """The request is made again: whatever was streamed of this message does not count."""

    reason: str
    """One line without secrets."""
    wait_seconds: float
    pause: float | None = None
    """Seconds in which the endpoint wants no other request either, 0 where it names no time; None: it is no
    matter of how many there are."""


Delta = TextDelta | ReasoningDelta | Retrying
OnDelta = Callable[[Delta], None]


class Reservation(Protocol):
    """Money and tokens set aside for one request. Exactly one of the three is called, once."""

    def settle(self, usage: Usage) -> float:
        """The endpoint said what it used. Returns dollars."""
        ...

    def release(self) -> None:
        """The request was refused before any work was done, or never sent: nothing was billed."""
        ...

    def settle_unknown(self, usage: Usage) -> float:
        """The answer was lost or cut. `usage` is our own estimate of what was billed. Returns dollars."""
        ...


class Meter(Protocol):
    """Whoever pays for requests. Every attempt is reserved before it is sent, a repeated one again."""

    def reserve(self, model: str, input_tokens: int, max_output_tokens: int) -> Reservation:
        """Sets aside what the request may cost at most. Never blocks for long.

        Args:
            model: `provider/name`.
            input_tokens: Estimated from the request's text.
            max_output_tokens: The most that the endpoint may answer.

        Raises:
            BudgetExhausted: It may cost more than is left.
        """
        ...


@dataclass(frozen=True)
class Bounds:
    """What bounds the requests of one session. A policy that costs nothing and never waits ignores it."""

    meter: Meter | None = None
    deadline: float | None = None
    """On the clock of time.monotonic(); no wait before a repeated request goes past it."""


class Session(Protocol):
    """One conversation with a policy; remembers what it was given."""

    async def complete(self, new_messages: list[Message]) -> Completion:
        """Appends `new_messages`, samples one assistant message, and appends that too."""
        ...


class Policy(Protocol):
    """Anything that can answer: a chat endpoint, the model in training, a script, the built-in operator."""

    name: str
    """`provider/name`, as a person would write it with --model."""

    def open(
        self,
        rollout_id: str,
        tools: list[dict[str, Any]],
        sampling: Sampling,
        on_delta: OnDelta | None = None,
        bounds: Bounds | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        """Opens a session. `tools` are OpenAI function schemas; `on_delta` receives what is streamed."""
        ...


@runtime_checkable
class SharesConnections(Protocol):
    """A policy whose sessions can use one client, where there are many of them."""

    def sharing(self) -> AbstractAsyncContextManager[None]:
        """Sessions that are opened meanwhile share a client and its connections; it is closed at the end."""
        ...


class PolicyError(Exception):
    """The policy could not answer (endpoint down, engine dead). An infrastructure failure, never reward 0.

    Its text is one line for a person, without secrets, that says what to do.
    """


class ContextOverflow(PolicyError):
    """The conversation does not fit the model's window. Only a shorter one can be answered."""


class BudgetExhausted(PolicyError):
    """The meter refused: answering may cost more than is left."""


class Throttled(PolicyError):
    """The endpoint takes no more requests for now."""


class DeadlineReached(PolicyError):
    """The next attempt would begin after the session's deadline."""
