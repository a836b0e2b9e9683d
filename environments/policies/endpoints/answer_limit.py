"""How much of an answer is taken, whatever the server makes of the limit that it was sent."""

from __future__ import annotations

from dataclasses import dataclass

from environments.policies.base import PolicyError
from environments.policies.endpoints.token_estimate import TextCount

SLACK = 1024
"""Tokens that an answer may be longer than twice its limit: we only estimate them."""
MOST_CHARACTERS = 64_000_000
MOST_EVENTS = 1_000_000
MOST_PARTS = 1000
"""Calls, or blocks, of one answer."""


def too_many_parts() -> PolicyError:
    return PolicyError(f"an answer of more than {MOST_PARTS} parts came: given up")


@dataclass
class AnswerLimit:
    """Told of every event of a stream.

    Args:
        max_tokens: What was reserved for the answer; None where nothing was.
    """

    max_tokens: int | None
    events: int = 0

    def is_passed(self, received: TextCount) -> bool:
        """Whether the stream is to be cut after one more event; `received` is all of the answer so far."""
        self.events += 1
        too_long = self.max_tokens is not None and received.tokens > 2 * self.max_tokens + SLACK
        return too_long or received.characters > MOST_CHARACTERS or self.events > MOST_EVENTS
