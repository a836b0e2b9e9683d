"""A run's place in the ledger: reserved before it starts, extended while it goes on, settled when it is over.

A run counts, as a whole, for the day on which it was started. Its reservation is what it is expected to
take; when that is used up it is extended a little at a time, as long as the budgets of the session and the
day allow.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.errors import Refused, RlCliError
from rl_cli.core.processes import ProcessIdentity
from rl_cli.spending.estimates import run_seconds
from rl_cli.spending.ledger import Books, Entry, Ledger
from rl_cli.spending.limits import Bound, Limits, OverBudget
from rl_cli.spending.rates import Rate, longest
from rl_cli.spending.units import Amounts

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.core.settings import Settings

UNKNOWN_SECONDS = 900.0
"""Reserved for a run of which nobody knows how long it takes."""
EXTEND_SECONDS = 300.0
LOOK_SECONDS = 15.0
"""How often a run that takes something is looked at."""
BEAT_SECONDS = 600.0
"""How often one that takes nothing shows a sign of life."""

NO_PRICE = "the price of a GPU hour is not known, and there is a budget in dollars"
NO_PRICE_HINT = "rl-cli config set prices.gpu_hour NUMBER; allow_unknown_prices: true counts it as $0"


def reserve_run(
    config: RunConfig, home: str | Path, settings: Settings, rate: Rate, session: str | None = None
) -> dict[str, Any]:
    """Reserves what a run is expected to take.

    Args:
        config: The run's, with the budget that bounds it.
        session: Of the conversation that starts it; None: nobody's.

    Returns:
        What RunSpending needs to know: kept in the run's state.json as `spending`.

    Raises:
        Refused: A budget does not allow it.
        RlCliError: The ledger cannot be written.
    """
    limits = Limits.from_settings(settings)
    ledger = Ledger(home)
    bounds = limits.bounds(session=session, day=ledger.today())
    in_dollars = config.budget.max_dollars is not None or any("dollars" in bound.limits for bound in bounds)
    if in_dollars and not rate.priced and not settings.allow_unknown_prices:
        raise Refused(NO_PRICE, NO_PRICE_HINT)
    expected = run_seconds(config, home)[0] or UNKNOWN_SECONDS
    amounts = rate.amounts(min(expected, longest(config, rate) or expected))
    entry = Entry("run", amounts, session=session, model=config.model.name, priced=rate.priced)
    try:
        ledger.reserve(entry, bounds)
    except OverBudget as error:
        raise Refused(str(error)) from None
    return {
        "entry": entry.id,
        "session": session,
        "gpus": rate.gpus,
        "gpu_hour": rate.gpu_hour,
        "limits": {"session": dict(limits.session), "day": dict(limits.day)},
    }


class RunSpending:
    """The spending of one run. Without `facts` it does nothing; what fails is told on stderr, never raised.

    Args:
        home: RL_CLI_HOME.
        run_id: The run.
        facts: As `reserve_run` returned them.
    """

    def __init__(self, home: str | Path, run_id: str, facts: Mapping[str, Any] | None) -> None:
        self.ledger, self.run_id, self.facts = Ledger(home), run_id, facts or {}
        self.rate = Rate(int(self.facts.get("gpus") or 0), self.facts.get("gpu_hour"))
        self._looked_at: float | None = None

    def adopt(self, *owners: ProcessIdentity) -> None:
        """From here on the reservation stands as long as one of these processes runs."""
        self._change(owners=list(owners))

    def use(self, seconds: float) -> str | None:
        """Notes what was used so far, and extends the reservation where that is due. Looks only now and then.

        Args:
            seconds: Since the run started.

        Returns:
            Why the run has to stop, or None.
        """
        every = LOOK_SECONDS if self.rate.gpus else BEAT_SECONDS
        if not self.facts or (self._looked_at is not None and seconds - self._looked_at < every):
            return None
        self._looked_at = seconds
        try:
            with self.ledger.writing() as books:
                entry = self._entry(books)
                entry.state, entry.closed, entry.least = "reserved", None, self.rate.amounts(seconds)
                refusal = self._extend(books, entry, seconds)
                books.put(entry)
                return refusal
        except RlCliError as error:
            print(f"the spending of {self.run_id} could not be noted: {error}", file=sys.stderr)
        return None

    def _extend(self, books: Books, entry: Entry, seconds: float) -> str | None:
        """Reserves more where the next look may be too late; returns why that is not allowed."""
        if self.rate.amounts(seconds + LOOK_SECONDS).gpu_hours <= entry.amounts.gpu_hours:
            return None
        grown = self.rate.amounts(seconds + EXTEND_SECONDS)
        try:
            books.check(replace(entry, amounts=grown), self._bounds(entry))
        except OverBudget as error:
            entry.amounts = max(entry.amounts, entry.least, key=lambda amounts: amounts.gpu_hours)
            return str(error)
        entry.amounts = grown
        return None

    def close(self, seconds: float | None, lost: bool = False) -> None:
        """The run is over.

        Args:
            seconds: How long it ran; None or 0: it did not.
            lost: Nobody saw its end: an estimate.
        """
        took = self.rate.amounts(max(0.0, seconds or 0.0))
        state = "released" if not took.hours else "abandoned" if lost else "settled"
        self._change(state=state, amounts=took, least=took, estimated=lost)

    def _change(self, **changes: Any) -> None:
        if not self.facts:
            return
        try:
            with self.ledger.writing() as books:
                books.put(replace(self._entry(books), **changes))
        except RlCliError as error:
            print(f"the spending of {self.run_id} could not be noted: {error}", file=sys.stderr)

    def _entry(self, books: Books) -> Entry:
        id, session = str(self.facts["entry"]), self.facts.get("session")
        entry = books.get(id) or Entry("run", id=id, session=session, priced=self.rate.priced)
        entry.run = self.run_id
        return entry

    def _bounds(self, entry: Entry) -> list[Bound]:
        known = self.facts.get("limits") or {}
        limits = Limits(session=known.get("session") or {}, day=known.get("day") or {})
        return limits.bounds(session=entry.session, day=entry.day or self.ledger.today())


def spent_on(home: str | Path, run_id: str, facts: Mapping[str, Any] | None, seconds: float = 0.0) -> Amounts:
    """What a run has taken so far, with the requests that were made for it; nothing where that is not known.

    Args:
        facts: As `reserve_run` returned them.
        seconds: That the attempt which goes on has run: the ledger hears of it only now and then.
    """
    try:
        with Ledger(home).reading() as books:
            spent = books.totals("run", run_id).spent
            entry = books.get(str(facts["entry"])) if facts else None
    except RlCliError:
        return Amounts()
    if not facts or entry is None or entry.state != "reserved":
        return spent
    so_far = Rate(int(facts.get("gpus") or 0), facts.get("gpu_hour")).amounts(seconds)
    return spent + max(entry.least, so_far, key=lambda amounts: amounts.hours)


def why_not(home: str | Path, settings: Settings, session: str | None, estimate: Any) -> str | None:
    """Why the budgets do not allow what a call is estimated to take; None: they do.

    Where only the time is not known, what is spent is bounded while it goes on.

    Args:
        estimate: A `tools.spec.Estimate`.
    """
    ledger = Ledger(home)
    limits = Limits.from_settings(settings)
    bounds = limits.bounds(session=session, day=ledger.today())
    only_how_long = estimate.seconds is None and settings.prices.get("gpu_hour") is not None
    unknown = estimate.dollars is None and not only_how_long and not settings.allow_unknown_prices
    if unknown and any("dollars" in bound.limits for bound in [*bounds, Bound("run", "", limits.run)]):
        return "what it costs is not known, and there is a budget in dollars"
    asked = Amounts(dollars=estimate.dollars or 0.0, gpu_hours=estimate.gpu_hours)
    try:
        with ledger.reading() as books:
            books.check(Entry("run", asked, owners=[]), bounds)
    except OverBudget as error:
        return str(error)
    return None
