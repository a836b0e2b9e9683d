"""How one sample ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rl_cli.data.rows import Row

SPOILT = frozenset({"provider", "sandbox", "worker", "internal", "deadline"})
"""Reasons that tell of the machinery, not of the sample: in a row they stop the batch. `deadline` is of those
that got no answer before theirs; with one they are done, and incomplete."""


@dataclass(frozen=True)
class Outcome:
    """How one sample ended.

    `open` is one that has to be tried again another time: the provider was down, or the budget used up.
    """

    key: str
    state: Literal["done", "failed", "open"]
    row: Row | None = None
    """None: nothing was paid for."""
    reason: str | None = None
    """Why it failed or is open, in one word."""
    error: str | None = None
    """The last error, in one line that begins with its class."""
    attempts: int = 1
    """How often that which failed was tried."""

    @property
    def is_spoilt(self) -> bool:
        return self.state == "failed" and self.reason in SPOILT
