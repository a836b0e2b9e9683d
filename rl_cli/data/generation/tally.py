"""What one sample takes of the money: every attempt at a request counts, answered or lost."""

from __future__ import annotations

from dataclasses import replace

from environments.policies.base import Meter, Reservation, Usage


class Tally:
    """A Meter that passes everything on, and adds up.

    Attributes:
        dollars: Of all requests.
        lost: Tokens of those that were billed and gave no answer, as far as that can be told.
    """

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.dollars = 0.0
        self.lost = Usage()

    def reserve(self, model: str, input_tokens: int, max_output_tokens: int) -> TalliedReservation:
        """Raises BudgetExhausted and PolicyError, as the meter does."""
        return TalliedReservation(self, self._meter.reserve(model, input_tokens, max_output_tokens))


class TalliedReservation:
    def __init__(self, tally: Tally, inner: Reservation) -> None:
        self._tally, self._inner = tally, inner

    def settle(self, usage: Usage) -> float:
        """Returns dollars."""
        return self._paid(self._inner.settle(usage))

    def settle_unknown(self, usage: Usage) -> float:
        """Returns dollars."""
        self._tally.lost += replace(usage, requests=0)  # its answer counts them all
        return self._paid(self._inner.settle_unknown(usage))

    def release(self) -> None:
        """Nothing was billed."""
        self._inner.release()

    def _paid(self, dollars: float) -> float:
        self._tally.dollars += dollars
        return dollars
