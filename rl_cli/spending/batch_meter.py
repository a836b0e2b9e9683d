"""The meter of a batch: one entry of the ledger for all its requests, reserved ahead for several of them.

Hundreds of requests a second would else wait for the disk twice each. What they took is written about once a
second (`flush`); a process that is killed leaves its entry at what had been written by then, with what the
requests that were under way must have taken.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from environments.policies.base import BudgetExhausted, Usage
from rl_cli.core.errors import RlCliError
from rl_cli.spending.ledger import Entry
from rl_cli.spending.limits import OverBudget
from rl_cli.spending.meter import SessionMeter, believable_usage
from rl_cli.spending.units import NOTHING, Amounts

AHEAD = (64, 16, 4, 1)
"""For so many requests like the one that is asked for, or for fewer where a budget does not allow that."""


class BatchMeter(SessionMeter):
    """A SessionMeter whose requests share an entry. `close` it at the end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._entry: Entry | None = None
        self._spent = self._sent = self._room = NOTHING
        """Of the entry's amounts: settled; set aside for requests that are under way; for those to come."""
        self._sent_least = NOTHING
        """What those under way take if nobody hears their answers."""
        self._used, self._estimated, self._requests = Usage(), False, 0
        self._asking: Entry | None = None
        self._lock = threading.Lock()

    def reserve(self, model: str, input_tokens: int, max_output_tokens: int) -> Share:  # type: ignore[override]
        """As SessionMeter does."""
        asked = self.request_entry(model, input_tokens, max_output_tokens)
        if self._entry is None or self._entry.day != self.ledger.today() or not _fits(asked, self._room):
            self._reserve_ahead(asked)
        self._room = _minus(self._room, asked.amounts)
        self._sent += asked.amounts
        self._sent_least += asked.least
        return Share(self, asked)

    def spent(self) -> Amounts:
        """What the batch has taken so far, by all processes."""
        return super().spent() + self._spent

    def flush(self) -> None:
        """Writes what is spent by now; for a thread that may wait for the disk."""
        with self._lock:
            if self._entry is None:
                return
            self._entry = self._as_entry(self._entry, self._room)
            try:
                with self.ledger.writing() as books:
                    books.put(self._entry)
                    lines = self._warnings(books)
            except RlCliError as error:  # the next one writes it
                lines = [f"what was spent is not recorded yet: {error}"]
        for line in lines:
            self.warn(line)

    def close(self) -> None:
        """No request follows."""
        with self._lock:
            if (entry := self._entry) is not None:
                self._entry = None
                self._settle(entry)

    def settled(self, asked: Entry, usage: Usage | None, dollars: float, estimated: bool) -> None:
        """A request is over; None: it took nothing."""
        self._sent = _minus(self._sent, asked.amounts)
        self._sent_least = _minus(self._sent_least, asked.least)
        if usage is None:
            self._room += asked.amounts
            return
        self._spent += Amounts(dollars, usage.input_tokens + usage.output_tokens)
        self._used += usage
        self._requests += 1
        self._estimated = self._estimated or estimated

    def _reserve_ahead(self, asked: Entry) -> None:
        """Raises BudgetExhausted where not even this one is allowed."""
        self._asking = asked
        with self._lock:
            if self._entry is not None and self._entry.day != self.ledger.today():
                self._settle(self._entry)
                self._entry = None
            for count in AHEAD:
                room = Amounts(asked.amounts.dollars * count, asked.amounts.tokens * count)
                entry = self._as_entry(self._entry or asked, room)
                try:
                    self._write(entry, self.bounds())
                except BudgetExhausted:
                    if count == AHEAD[-1]:
                        raise
                else:
                    self._entry, self._room = entry, room
                    return

    def _exhausted(self, entry: Entry, error: OverBudget) -> BudgetExhausted:
        """Told of the request that is asked for, not of the entry that it shares."""
        asked = self._asking or entry
        spent, sent = self._spent.of(error.unit), self._sent.of(error.unit)
        figures = (error.spent + spent, error.reserved + sent, asked.amounts.of(error.unit))
        return super()._exhausted(asked, OverBudget(error.scope, error.unit, error.limit, *figures))

    def _as_entry(self, entry: Entry, room: Amounts) -> Entry:
        return replace(
            entry,
            amounts=self._spent + self._sent + room,
            least=self._spent + self._sent_least,
            estimated=self._estimated,
            input_tokens=self._used.input_tokens,
            output_tokens=self._used.output_tokens,
            cached_tokens=self._used.cached_tokens,
            cache_write_tokens=self._used.cache_write_tokens,
            requests=self._requests,
        )

    def _settle(self, entry: Entry) -> None:
        entry = self._as_entry(entry, NOTHING)
        self._finish(replace(entry, amounts=self._spent, state="settled"))
        self._spent, self._used, self._estimated, self._requests = NOTHING, Usage(), False, 0


@dataclass
class Share:
    """What was set aside for one request. The first of the three calls counts, the others do nothing."""

    meter: BatchMeter
    asked: Entry
    dollars: float | None = None
    """What it took; None: it is under way."""

    def settle(self, usage: Usage) -> float:
        """As RequestReservation does."""
        if not usage.input_tokens and not usage.output_tokens:
            return self.settle_unknown(Usage(self.asked.input_tokens))
        return self._close(usage, estimated=False)

    def settle_unknown(self, usage: Usage) -> float:
        return self._close(usage, estimated=True)

    def release(self) -> None:
        if self.dollars is None:
            self.dollars = 0.0
            self.meter.settled(self.asked, None, 0.0, False)

    def _close(self, usage: Usage, estimated: bool) -> float:
        if self.dollars is None:
            counted = believable_usage(usage)
            price = self.meter._price(self.asked.model or "", counted)
            self.dollars = self.asked.amounts.dollars if price is None else price
            self.meter.settled(self.asked, counted, self.dollars, estimated or counted != usage)
        return self.dollars


def _fits(asked: Entry, room: Amounts) -> bool:
    return asked.amounts.dollars <= room.dollars and asked.amounts.tokens <= room.tokens


def _minus(amounts: Amounts, taken: Amounts) -> Amounts:
    return Amounts(max(0.0, amounts.dollars - taken.dollars), max(0, amounts.tokens - taken.tokens))
