"""What came of a turn, and what it was allowed on the way."""

from __future__ import annotations

from dataclasses import dataclass

from environments.agent_loop import CallRecord, StopReason
from environments.policies.base import Usage


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
    """A call was refused, by a rule, the person or a budget, and none of that tool was allowed after it."""


@dataclass
class Tries:
    """What a turn has been allowed so far."""

    empty: int = 0
    cut: int = 0
    overflows: int = 0
    full: bool = False
    """The loop was stopped to make room."""
    may_shorten: bool = True
    answered: bool = False
    """A tool had the final answer."""
