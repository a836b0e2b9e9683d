"""A meter that writes down what it is told, for the tests of policies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from environments.policies.base import BudgetExhausted, Usage


@dataclass
class LoggingMeter:
    """A dollar per settled request, half a dollar for a lost one."""

    requests_left: int = 1000
    log: list[tuple[Any, ...]] = field(default_factory=list)

    def reserve(self, model: str, input_tokens: int, max_output_tokens: int) -> LoggingReservation:
        if not self.requests_left:
            raise BudgetExhausted("the budget of this test is used up")
        self.requests_left -= 1
        self.log.append(("reserve", model, input_tokens, max_output_tokens))
        return LoggingReservation(self)

    @property
    def kinds(self) -> list[str]:
        return [entry[0] for entry in self.log]


@dataclass
class LoggingReservation:
    meter: LoggingMeter
    ended: bool = False

    def _end(self, kind: str, usage: Usage | None = None) -> None:
        assert not self.ended, "a reservation ends once"
        self.ended = True
        self.meter.log.append((kind, usage))

    def settle(self, usage: Usage) -> float:
        self._end("settle", usage)
        return 1.0

    def release(self) -> None:
        self._end("release")

    def settle_unknown(self, usage: Usage) -> float:
        self._end("unknown", usage)
        return 0.5
