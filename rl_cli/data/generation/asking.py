"""What one sample asks: its messages, and how they are sampled."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from environments.policies.base import Sampling
from rl_cli.core.messages import Message, system
from rl_cli.data.batch.config import BatchConfig


def sampling_of(config: BatchConfig, key: str) -> Sampling:
    """Each sample has a seed of its own, or equal prompts would get equal answers."""
    digest = blake2b(f"{config.seed}/{key}".encode(), digest_size=4).digest()
    return Sampling(
        temperature=config.temperature,
        max_tokens=config.max_output_tokens,
        top_p=config.top_p,
        seed=int.from_bytes(digest) >> 1,
        reasoning_effort=config.reasoning_effort,
    )


def with_prefill(prefill: list[Any], messages: list[Message]) -> list[Message]:
    """A conversation with others before it; its own system message stays the first."""
    own = messages[:1] if prefill and messages[0]["role"] == "system" else []
    return [*own, *prefill, *messages[len(own) :]]


def with_system(text: str, messages: list[Message]) -> list[Message]:
    """A conversation with a text before all else: in the system message that it has, or in one of its own."""
    first = messages[0]
    if first["role"] != "system":
        return [system(text), *messages]
    return [system(f"{text}\n\n{first['content'] or ''}"), *messages[1:]]
