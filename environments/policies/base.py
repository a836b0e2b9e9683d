"""The contract between the loop and whatever answers: a policy opens sessions, they complete messages."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

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


@dataclass
class Usage:
    """Counts of tokens and requests; they add up."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
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
        on_delta: Callable[[str], None] | None = None,
    ) -> AbstractAsyncContextManager[Session]:
        """Opens a session. `tools` are OpenAI function schemas; `on_delta` receives streamed text."""
        ...


class PolicyError(Exception):
    """The policy could not answer (endpoint down, engine dead). An infrastructure failure, never reward 0."""
