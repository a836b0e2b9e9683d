"""Whatever happens in whatever order, the totals are the sum of what happened."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from rl_cli.spending.ledger import Entry, Ledger
from rl_cli.spending.limits import Bound, OverBudget
from rl_cli.spending.units import NOTHING, Amounts
from tests.spending.kit import Clock, dead

LIMIT = 1000
GONE = dead()


def dollars(parts: int) -> Amounts:
    """Whole numbers of 1/64 dollar, so that sums are exact."""
    return Amounts(parts / 64, parts)


class Spending(RuleBasedStateMachine):
    """Two processes' ledgers on one file, and a model of what it must hold."""

    entries = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.ledgers = [Ledger(Path(self.folder.name), self.clock) for _ in range(2)]
        self.bounds = [Bound("session", "s", {"tokens": LIMIT})]
        self.spent: dict[str, Amounts] = {}
        self.reserved: dict[str, Amounts] = {}
        self.doomed: dict[str, Amounts] = {}

    def teardown(self) -> None:
        self.folder.cleanup()

    def bury(self) -> None:
        """What the next writer does first."""
        for id, least in self.doomed.items():
            self.reserved.pop(id)
            self.spent[id] = least
        self.doomed.clear()

    @rule(target=entries, who=st.integers(0, 1), most=st.integers(1, 400), least=st.integers(0, 400))
    def reserve(self, who: int, most: int, least: int) -> tuple[int, Entry]:
        entry = Entry("request", dollars(most), dollars(min(least, most)), session="s")
        self.doomed, doomed = {}, self.doomed
        taken = sum(a.tokens for a in self.spent.values()) + sum(a.tokens for a in self.reserved.values())
        taken += sum(least.tokens - self.reserved[id].tokens for id, least in doomed.items())
        self.doomed = doomed
        try:
            self.ledgers[who].reserve(entry, self.bounds)
        except OverBudget:
            assert taken + most > LIMIT
            entry.state = "refused"
        else:
            assert taken + most <= LIMIT
            self.bury()
            self.reserved[entry.id] = dollars(most)
        return who, entry

    @rule(pair=consumes(entries), parts=st.integers(0, 400), jump=st.integers(-100_000, 100_000))
    def settle(self, pair: tuple[int, Entry], parts: int, jump: int) -> None:
        who, entry = pair
        self.clock.now += jump
        if entry.state == "reserved":
            entry.state, entry.amounts = "settled", dollars(parts)
            assert self.ledgers[who].finish(entry) is None
            self.doomed.pop(entry.id, None)
            self.reserved.pop(entry.id, None)
            self.bury()
            self.spent[entry.id] = dollars(parts)

    @rule(pair=consumes(entries))
    def release(self, pair: tuple[int, Entry]) -> None:
        who, entry = pair
        if entry.state == "reserved":
            entry.state, entry.amounts = "released", NOTHING
            self.ledgers[who].finish(entry)
            for held in (self.doomed, self.reserved, self.spent):
                held.pop(entry.id, None)
            self.bury()

    @rule(pair=entries)
    def lose_the_owner(self, pair: tuple[int, Entry]) -> None:
        who, entry = pair
        if entry.state == "reserved" and entry.id in self.reserved and entry.id not in self.doomed:
            entry.owners = [GONE]
            with self.ledgers[who].writing() as books:
                books.put(entry)
            self.bury()
            self.doomed[entry.id] = entry.least

    @rule(who=st.integers(0, 1))
    def look(self, who: int) -> None:
        with self.ledgers[who].writing():
            pass
        self.bury()

    @invariant()
    def the_totals_are_right(self) -> None:
        with self.ledgers[0].reading() as books:
            found = books.totals("session", "s")
        assert found.spent == sum(self.spent.values(), NOTHING)
        assert found.reserved == sum(self.reserved.values(), NOTHING)


Spending.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestSpending = Spending.TestCase
