"""The meter of one session: every request is reserved in the ledger before it is sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from environments.policies.base import BudgetExhausted, PolicyError, Usage
from rl_cli.core.errors import RlCliError
from rl_cli.spending.ledger import Books, Entry, Ledger
from rl_cli.spending.limits import SLACK, WARN_SHARE, WHOSE, Bound, Limits, OverBudget
from rl_cli.spending.prices import PriceOf, price_list
from rl_cli.spending.units import MOST, NOTHING, Amounts, believable, in_words

if TYPE_CHECKING:
    from rl_cli.core.settings import Settings

NO_PRICE = (
    "the price of {model} is not known, and there is a budget in dollars: nothing is sent (set "
    'prices.models."{model}" in the settings, or allow_unknown_prices: true to count it as $0)'
)
LEAST_ANSWER = 256
"""Tokens; a model that may say less is of no use."""


class SessionMeter:
    """Implements `environments.policies.base.Meter`, and counts the time of the assistant's turns.

    Args:
        ledger: Where it is written.
        limits: The budgets.
        session_id: Whose session.
        price_of: Dollars of a request; None where the price is not known.
        allow_unknown: Count an unknown price as 0 dollars although there is a budget in dollars.
        on_warning: Receives one line when a budget is 80 % used, once for each budget.
        run_id: The run that the requests are made for, if they are.
    """

    def __init__(
        self,
        ledger: Ledger,
        limits: Limits,
        session_id: str,
        price_of: PriceOf,
        allow_unknown: bool = False,
        on_warning: Callable[[str], None] | None = None,
        run_id: str | None = None,
    ) -> None:
        self.ledger, self.limits = ledger, limits
        self.session_id, self.run_id = session_id, run_id
        self.price_of, self.allow_unknown = price_of, allow_unknown
        self.warn = on_warning or (lambda line: None)
        self._turn: Entry | None = None
        self._turn_began = 0.0
        self._paused_at: float | None = None

    @classmethod
    def open(
        cls,
        home: str | Path,
        settings: Settings,
        session_id: str,
        base_url: str | None = None,
        on_warning: Callable[[str], None] | None = None,
        run_id: str | None = None,
    ) -> Self:
        """The meter that the settings ask for.

        Args:
            base_url: Where the session's requests are sent; None: to the provider's own address.
        """
        prices = price_list(settings.prices.get("models") or {}, base_url)
        limits = Limits.from_settings(settings)
        unknown = settings.allow_unknown_prices
        return cls(Ledger(home), limits, session_id, prices, unknown, on_warning, run_id)

    def bounds(self) -> list[Bound]:
        """What a request of now has to keep to."""
        return self.limits.bounds(session=self.session_id, run=self.run_id, day=self.ledger.today())

    def reserve(self, model: str, input_tokens: int, max_output_tokens: int) -> RequestReservation:
        """Sets aside what the request may cost at most.

        Raises:
            BudgetExhausted: A budget does not allow it, or there is one in dollars and no price.
            PolicyError: The ledger cannot be written; nothing may be spent then.
        """
        entry = self.request_entry(model, input_tokens, max_output_tokens)
        self._write(entry, self.bounds())
        return RequestReservation(self, entry)

    def request_entry(self, model: str, input_tokens: int, max_output_tokens: int) -> Entry:
        """A request as the ledger takes it, with what it may cost at most; not written.

        Raises:
            BudgetExhausted: There is a budget in dollars and no price.
        """
        most = Usage(input_tokens, max_output_tokens)
        dearest = Usage(input_tokens, max_output_tokens, cache_write_tokens=input_tokens)
        prices = [self._price(model, usage) for usage in (most, dearest)]
        known = [price for price in prices if price is not None]
        if not known and not self.allow_unknown and any("dollars" in b.limits for b in self.bounds()):
            raise BudgetExhausted(NO_PRICE.format(model=model))
        return Entry(
            "request",
            amounts=Amounts(max(known, default=0.0), input_tokens + max_output_tokens),
            least=Amounts(self._price(model, Usage(input_tokens)) or 0.0, input_tokens),
            session=self.session_id,
            run=self.run_id,
            model=model,
            priced=bool(known),
            input_tokens=input_tokens,
            output_tokens=max_output_tokens,
        )

    def _price(self, model: str, usage: Usage) -> float | None:
        dollars = self.price_of(model, usage)
        return None if dollars is None else believable("dollars", dollars)

    def turn_started(self) -> None:
        """The assistant begins to work. A turn that has not ended goes on.

        Raises:
            BudgetExhausted: The session's hours or the day's have passed.
            PolicyError: The ledger cannot be written.
        """
        if self._turn is None:
            turn = Entry("turn", session=self.session_id)
            self._write(turn, self.bounds())
            self._turn, self._turn_began = turn, time.monotonic()
            if self._paused_at is not None:
                self._paused_at = self._turn_began

    def turn_ended(self) -> None:
        """It has answered, or was interrupted."""
        if turn := self._turn:
            turn.amounts, turn.state, self._turn = self._turn_amounts(), "settled", None
            self._finish(turn)

    def pause(self) -> None:
        """The assistant waits for the person from here on: that is no work."""
        self._paused_at = time.monotonic()

    def resume(self) -> None:
        """The person has answered."""
        if self._paused_at is not None:
            self._turn_began += time.monotonic() - self._paused_at
            self._paused_at = None

    def seconds_left(self) -> float | None:
        """Seconds that the assistant may still work today in this session; None: as long as it takes."""
        if not any("hours" in bound.limits for bound in self.bounds()):
            return None
        left = []
        with self.ledger.reading() as books:
            for bound in self.bounds():
                if "hours" in bound.limits:
                    totals = books.totals(bound.scope, bound.name, self._turn_id)
                    used = totals.spent.hours + totals.reserved.hours + self._turn_amounts().hours
                    left.append(bound.limits["hours"] - used)
        return max(0.0, min(left)) * 3600

    def spent(self) -> Amounts:
        """What this session has taken so far, by all processes; its hours are those of finished turns."""
        with self.ledger.reading() as books:
            return books.totals("session", self.session_id).spent

    @property
    def _turn_id(self) -> str:
        return self._turn.id if self._turn else ""

    def _turn_amounts(self) -> Amounts:
        if self._turn is None:
            return NOTHING
        now = time.monotonic() if self._paused_at is None else self._paused_at
        return Amounts(hours=(now - self._turn_began) / 3600)

    def _write(self, entry: Entry, bounds: list[Bound]) -> None:
        if self._turn and self._turn.day != self.ledger.today():  # midnight has passed
            self.turn_ended()
            self.turn_started()
        lines: list[str] = []
        try:
            with self.ledger.writing() as books:
                if turn := self._turn:  # so that a crash does not forget how long it has taken
                    turn.amounts = turn.least = self._turn_amounts()
                    books.put(turn)
                books.check(entry, bounds)
                books.put(entry)
                lines = self._warnings(books)
        except OverBudget as error:
            raise self._exhausted(entry, error) from None
        except RlCliError as error:
            raise PolicyError(f"what is spent cannot be recorded, so nothing is sent: {error}") from error
        for line in lines:
            self.warn(line)

    def _exhausted(self, entry: Entry, error: OverBudget) -> BudgetExhausted:
        return BudgetExhausted(f"{error}{self._what_fits(entry, error)}")

    def _what_fits(self, entry: Entry, error: OverBudget) -> str:
        """How long an answer may be so that the request fits: it is reserved at its most."""
        if not entry.output_tokens or error.unit not in ("dollars", "tokens"):
            return ""
        asked, question = error.asked, float(entry.input_tokens)
        if error.unit == "dollars":
            uses = (Usage(entry.input_tokens, cache_write_tokens=n) for n in (0, entry.input_tokens))
            question = max(self.price_of(entry.model or "", use) or 0.0 for use in uses)
        share = (error.limit - error.spent - error.reserved - question) / max(asked - question, SLACK)
        tokens = int(share * entry.output_tokens)
        if tokens < LEAST_ANSWER:
            return ""
        setting = f"endpoints.{(entry.model or '').partition('/')[0]}.max_output_tokens"
        return (
            f". That is the most that an answer of {entry.output_tokens:,} tokens can take; one of "
            f"{tokens:,} fits: rl-cli config set {setting} {tokens}"
        )

    def _finish(self, entry: Entry) -> None:
        lines: list[str] = []
        error = self.ledger.finish(entry, lambda books: lines.extend(self._warnings(books)))
        if error:  # what was answered is worth more than a complaint
            lines = [f"what was spent is not recorded yet, its reservation stands: {error}"]
        for line in lines:
            self.warn(line)

    def _warnings(self, books: Books) -> list[str]:
        """One line for each budget of which 80 % is spent, unless somebody was told before."""
        lines = []
        for bound in self.bounds():
            spent = books.totals(bound.scope, bound.name).spent
            for unit, limit in bound.limits.items():
                what = f"{bound.scope}/{bound.name}/{unit}/{limit:g}"
                if limit and spent.of(unit) >= WARN_SHARE * limit and books.first_time(what):
                    share = spent.of(unit) / limit
                    used, budget = in_words(unit, spent.of(unit)), in_words(unit, limit)
                    lines.append(f"{share:.0%} of {WHOSE[bound.scope]} budget is spent: {used} of {budget}")
        return lines


class RequestReservation:
    """What was set aside for one request. The first of the three calls counts, the others do nothing."""

    def __init__(self, meter: SessionMeter, entry: Entry) -> None:
        self._meter, self._entry = meter, entry

    def settle(self, usage: Usage) -> float:
        """Returns dollars. A server that reports no tokens at all is settled by the estimate of the input."""
        if not usage.input_tokens and not usage.output_tokens:
            return self.settle_unknown(Usage(self._entry.input_tokens))
        return self._close(usage, estimated=False)

    def settle_unknown(self, usage: Usage) -> float:
        """Settles by our own estimate; returns dollars."""
        return self._close(usage, estimated=True)

    def release(self) -> None:
        """Nothing was billed."""
        if self._entry.state == "reserved":
            self._close(Usage(), estimated=False, state="released")

    def _close(self, usage: Usage, estimated: bool, state: str = "settled") -> float:
        entry = self._entry
        if entry.state != "reserved":
            return entry.amounts.dollars
        reported, usage = usage, believable_usage(usage)
        dollars = self._meter._price(entry.model or "", usage) if state == "settled" else 0.0
        entry.state, entry.estimated = state, estimated or usage != reported
        entry.priced = entry.priced if dollars is None else True
        if dollars is None:  # no price: it counts as what was reserved, which is 0 where that had none either
            dollars = entry.amounts.dollars
        entry.amounts = Amounts(dollars, usage.input_tokens + usage.output_tokens)
        entry.input_tokens, entry.output_tokens = usage.input_tokens, usage.output_tokens
        entry.cached_tokens, entry.cache_write_tokens = usage.cached_tokens, usage.cache_write_tokens
        self._meter._finish(entry)
        if usage != reported:
            self._meter.warn(
                f"{entry.model} reported more tokens than can be: they count as {MOST['tokens']:,}"
            )
        return dollars


def believable_usage(usage: Usage) -> Usage:
    """The same within what can be."""
    names = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
    return replace(usage, **{name: int(believable("tokens", getattr(usage, name))) for name in names})
