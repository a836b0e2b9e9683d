from __future__ import annotations

import os
import random
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rl_cli.core.errors import RlCliError, WorkFailed
from rl_cli.core.processes import ProcessIdentity
from rl_cli.spending.ledger import Entry, Ledger
from rl_cli.spending.limits import Bound, OverBudget
from rl_cli.spending.units import Amounts
from tests.spending.kit import Clock, dead, start, totals

DOLLARS = [Bound("session", "s", {"dollars": 10.0})]


def request(dollars: float, least: float = 0.0, **fields: object) -> Entry:
    known = {"session": "s", **fields}
    return Entry("request", Amounts(dollars, 100), Amounts(least, 10), **known)  # type: ignore[arg-type]


def test_what_is_reserved_counts_until_it_is_settled_or_released(home: Path) -> None:
    ledger, first, second = Ledger(home), request(6), request(5)
    ledger.reserve(first, DOLLARS)
    with pytest.raises(
        OverBudget, match=r"\$10\.00 does not allow this: \$0\.00 spent, \$6\.00 reserved, up to \$5"
    ):
        ledger.reserve(second, DOLLARS)
    first.state, first.amounts = "settled", Amounts(2, 30)
    assert ledger.finish(first) is None
    ledger.reserve(second, DOLLARS)
    second.state, second.amounts = "released", Amounts()
    ledger.finish(second)
    assert totals(home).spent == Amounts(2, 30)
    assert totals(home).reserved == Amounts()


def test_exactly_the_budget_can_be_spent(home: Path) -> None:
    ledger = Ledger(home)
    for _ in range(100):
        ledger.reserve(request(0.1), DOLLARS)
    with pytest.raises(OverBudget, match="is used up"):
        ledger.reserve(request(0.1), DOLLARS)
    ledger.reserve(request(0), DOLLARS)  # costs nothing, so that no budget of dollars holds it up


SPEND = """
meter, warnings = meter(Path(sys.argv[1]), sys.argv[2], day={"dollars": 5.0})
sys.stdin.readline()
chance = random.Random(sys.argv[2])
from environments.policies.base import BudgetExhausted
print("ready", flush=True)
while True:
    try:
        asked = chance.randrange(10, 100)
        reserved = meter.reserve("x/y", asked, 10)
    except BudgetExhausted:
        break
    ending = chance.random()
    if ending < 0.1:
        reserved.release()
    elif ending < 0.2:
        reserved.settle_unknown(Usage(10, 3))
    elif ending < 0.9:
        reserved.settle(Usage(chance.randrange(asked + 1), chance.randrange(11)))
    else:
        time.sleep(0.01)
        reserved.settle(Usage(asked, 10))
print(len(warnings), flush=True)
"""


def test_eight_processes_at_once_keep_to_a_budget_and_warn_once(home: Path) -> None:
    processes = [start(SPEND, str(home), f"s{i}") for i in range(8)]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    day = Ledger(home).today()
    seen = []
    while any(process.poll() is None for process in processes):
        found = totals(home, "day", day)
        seen.append(found.spent.dollars + found.reserved.dollars)
    told = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert max(seen) <= 5.0 + 1e-9
    left = totals(home, "day", day)
    assert left.reserved == Amounts()
    assert 4.5 < left.spent.dollars <= 5.0 + 1e-9  # no more was left than one reservation asks for
    assert sum(int(words[-1]) for words in told) == 1


HOLD = """
reservation = meter(Path(sys.argv[1]))[0].reserve("x/y", 1000, 500)
print("reserved", flush=True)
time.sleep(600)
"""


def test_what_a_killed_process_had_reserved_is_settled_at_its_input(home: Path) -> None:
    process = start(HOLD, str(home))
    assert process.stdout
    process.stdout.readline()
    assert totals(home).reserved.dollars == pytest.approx(6.0)
    process.kill()
    process.wait()
    found = totals(home)
    assert (found.reserved, found.spent) == (Amounts(), Amounts(1.0, 1000))
    [row] = sqlite3.connect(home / "spending.db").execute("SELECT state, estimated FROM entries")
    assert row == ("abandoned", 1)


STORM = """
held = []
made = meter(Path(sys.argv[1]))[0]
print("go", flush=True)
while True:
    held.append(made.reserve("x/y", 1, 1))
    if random.random() < 0.5:
        held.pop(0).settle(Usage(1, 1))
"""


def test_kills_in_the_middle_of_writing_leave_a_sound_ledger(home: Path) -> None:
    chance = random.Random(0)
    for _ in range(8):
        process = start(STORM, str(home))
        assert process.stdout
        process.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.3))
        process.kill()
        process.wait()
        assert totals(home).reserved == Amounts()
    with sqlite3.connect(home / "spending.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        states = dict(db.execute("SELECT state, COUNT(*) FROM entries GROUP BY 1"))
    assert set(states) == {"settled", "abandoned"}
    assert totals(home).spent.tokens == 2 * states["settled"] + states["abandoned"]


def test_a_true_amount_that_comes_late_replaces_the_estimate(home: Path) -> None:
    ledger, entry = Ledger(home), request(5, least=1, owners=[dead()])
    ledger.reserve(entry)
    assert totals(home).spent.dollars == 1
    entry.state, entry.amounts = "settled", Amounts(3, 70)
    ledger.finish(entry)
    assert totals(home).spent == Amounts(3, 70)


def test_an_entry_lives_as_long_as_one_of_its_owners(home: Path) -> None:
    Ledger(home).reserve(request(5, owners=[dead(), ProcessIdentity.current()]))
    assert totals(home).reserved.dollars == 5


def test_a_silent_process_of_another_host_is_given_up_after_an_hour(home: Path) -> None:
    clock = Clock()
    elsewhere = replace(ProcessIdentity.current(), host="elsewhere")
    Ledger(home, clock).reserve(request(5, least=1, owners=[elsewhere]))
    for minutes, reserved in ((59, 5), (-600, 5), (61, 0)):  # a clock that jumps back gives nobody up
        clock.now = 1_800_000_000 + 60 * minutes
        with Ledger(home, clock).writing() as books:
            assert books.totals("session", "s").reserved.dollars == reserved
    assert totals(home).spent.dollars == 1


def test_days_are_local_and_a_clock_that_jumps_forgets_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        clock = Clock(1_799_989_199)  # 2027-01-14 23:59:59 in New York, already the 15th in UTC
        ledger = Ledger(home, clock)
        bound = {"dollars": 10.0}
        late = request(9, session=None)
        ledger.reserve(late, [Bound("day", ledger.today(), bound)])
        assert ledger.today() == "2027-01-14"
        clock.now += 1
        assert ledger.today() == "2027-01-15"
        ledger.reserve(request(9, session=None), [Bound("day", ledger.today(), bound)])
        late.state, late.amounts = "settled", Amounts(8)
        ledger.finish(late)  # counts for the day on which it was reserved
        assert totals(home, "day", "2027-01-14").spent.dollars == 8
        clock.now -= 3600
        with pytest.raises(OverBudget):
            ledger.reserve(request(3, session=None), [Bound("day", ledger.today(), bound)])
    finally:
        monkeypatch.undo()
        time.tzset()


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:] = os.urandom(len(content) - 100)
    path.write_bytes(content)


def garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, and it is long enough to be taken for one by nobody" * 9)


def foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE entries (mine)")


def newer(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damage, "damaged"),
        (garbage, "damaged"),
        (foreign, "not a file of rl-cli's"),
        (newer, "a newer rl-cli"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_clear_error_and_stays(
    home: Path, spoil: object, words: str
) -> None:
    ledger = Ledger(home)
    ledger.reserve(request(1))
    spoil(ledger.path)  # type: ignore[operator]
    before = ledger.path.read_bytes()
    for use in (ledger.writing, ledger.reading):
        with pytest.raises(WorkFailed, match=words) as error, use():
            pass
        assert str(ledger.path) in str(error.value)
    assert ledger.path.read_bytes() == before


def test_a_file_that_was_deleted_begins_anew_and_keeps_what_is_settled(home: Path) -> None:
    ledger, entry = Ledger(home), request(5)
    ledger.reserve(entry)
    ledger.path.unlink()
    entry.state, entry.amounts = "settled", Amounts(3)
    assert ledger.finish(entry) is None
    assert totals(home).spent.dollars == 3


def test_what_cannot_be_settled_now_is_settled_with_the_next_transaction(home: Path) -> None:
    ledger, entry = Ledger(home), request(5)
    ledger.reserve(entry)
    aside = ledger.path.rename(home / "aside")
    ledger.path.mkdir()
    entry.state, entry.amounts = "settled", Amounts(3)
    assert isinstance(ledger.finish(entry), RlCliError)
    ledger.path.rmdir()
    aside.rename(ledger.path)
    assert totals(home).reserved.dollars == 5
    ledger.reserve(request(1), DOLLARS)
    assert totals(home).spent.dollars == 3
