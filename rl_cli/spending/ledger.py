"""The ledger: what is reserved and what was spent, shared by all processes of a home folder.

An entry is written before money goes out (`reserved`, with the most that it may take) and again when it
is known what went out (`settled`, `released`). An entry whose owners have ended is closed by whoever writes
next, as `abandoned`, at the least that it must have taken; if its true amount becomes known later, that
replaces it.
Entries count for the local date on which they were reserved.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.core.errors import RlCliError
from rl_cli.core.processes import ProcessIdentity
from rl_cli.spending.entry import Entry as Entry
from rl_cli.spending.entry import from_row, to_row
from rl_cli.spending.ledger_file import NAME, copy_of, nothing, transaction
from rl_cli.spending.limits import SLACK, Bound, OverBudget
from rl_cli.spending.units import NOTHING, UNITS, Amounts

if TYPE_CHECKING:
    import sqlite3

ABANDONED_AFTER_SECONDS = 3600.0
"""Without a sign of life for so long, an owner on another host is taken to have ended."""
SCOPES = ("session", "run", "day")
SCALE = {"dollars": 10**9, "tokens": 1, "gpu_hours": 10**9, "hours": 10**9}
"""Sums are kept in whole billionths."""
ADD = """
INSERT INTO sums VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET dollars = dollars + excluded.dollars,
tokens = tokens + excluded.tokens, gpu_hours = gpu_hours + excluded.gpu_hours, hours = hours + excluded.hours
"""


@dataclass(frozen=True)
class Totals:
    """What one session, run or day has taken."""

    spent: Amounts = NOTHING
    """Settled and abandoned."""
    reserved: Amounts = NOTHING


class Books:
    """The ledger inside one transaction."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self.db, self.now = db, now

    def put(self, entry: Entry) -> None:
        """Writes an entry, whatever was there under its id."""
        entry.keep_within_bounds()
        entry.time = entry.time or self.now
        entry.day = entry.day or local_day(entry.time)
        entry.beat = self.now
        if entry.state != "reserved":
            entry.closed = entry.closed or self.now
        if earlier := self.get(entry.id):
            self._count(earlier, -1)
        self._count(entry, 1)
        row = to_row(entry)
        marks = ", ".join(f":{name}" for name in row)
        self.db.execute(f"INSERT OR REPLACE INTO entries ({', '.join(row)}) VALUES ({marks})", row)

    def _count(self, entry: Entry, sign: int) -> None:
        """Keeps the sums, so that a check does not add up everything that was ever spent."""
        for scope in SCOPES:
            name, parts = getattr(entry, scope), [sign * part for part in _parts(entry, scope)]
            if name and any(parts):
                self.db.execute(ADD, (scope, name, entry.state == "reserved", *parts))

    def get(self, id: str) -> Entry | None:
        row = self.db.execute("SELECT * FROM entries WHERE id = ?", (id,)).fetchone()
        return from_row(row) if row else None

    def totals(self, scope: str, name: str, besides: str = "") -> Totals:
        """What a session, run or day has taken; the entry with the id `besides` is left out.

        Hours are those of turns; of a run, its own.
        """
        query = f"SELECT reserved, {', '.join(UNITS)} FROM sums WHERE scope = ? AND name = ?"
        found = {bool(row[0]): list(row[1:]) for row in self.db.execute(query, (scope, name))}
        left_out = self.get(besides) if besides else None
        if left_out and getattr(left_out, scope) == name:
            sums = found[left_out.state == "reserved"] if any(_parts(left_out, scope)) else []
            sums[:] = [a - b for a, b in zip(sums, _parts(left_out, scope), strict=False)]
        return Totals(_amounts(found.get(False)), _amounts(found.get(True)))

    def check(self, entry: Entry, bounds: Sequence[Bound]) -> None:
        """Raises OverBudget if the entry may take more than one of the bounds leaves.

        What takes nothing of a unit is not held up by its bound. Hours are those of turns: when all of them
        have passed, no turn and no request begins.
        """
        for bound in bounds:
            totals = self.totals(bound.scope, bound.name, besides=entry.id)
            for unit, limit in bound.limits.items():
                spent, reserved, asked = (a.of(unit) for a in (totals.spent, totals.reserved, entry.amounts))
                if unit == "hours":
                    over = entry.kind != "run" and spent + reserved >= limit
                else:
                    over = asked > 0 and spent + reserved + asked > limit + SLACK
                if over:
                    raise OverBudget(bound.scope, unit, limit, spent, reserved, asked)

    def first_time(self, what: str) -> bool:
        """True for the first caller with this text, in all processes and for ever."""
        row = (what, self.now)
        return bool(self.db.execute("INSERT OR IGNORE INTO told VALUES (?, ?)", row).rowcount)

    def close_abandoned(self) -> list[Entry]:
        """Closes the entries whose owners have ended, at the least that they have taken."""
        alive: dict[str, bool | None] = {}
        closed = []
        for row in self.db.execute("SELECT * FROM entries WHERE state = 'reserved'").fetchall():
            owners = row["owners"]
            if owners not in alive:
                alive[owners] = _any_alive(owners)
            silent = self.now - row["beat"] > ABANDONED_AFTER_SECONDS
            if alive[owners] or (alive[owners] is None and not silent):
                continue
            entry = from_row(row)
            entry.state, entry.amounts, entry.estimated = "abandoned", entry.least, True
            entry.input_tokens = entry.least.tokens
            beat = entry.beat
            self.put(entry)
            self.db.execute("UPDATE entries SET beat = ? WHERE id = ?", (beat, entry.id))
            closed.append(entry)
        return closed


class Ledger:
    """RL_CLI_HOME/spending.db.

    Args:
        home: RL_CLI_HOME.
        clock: Unix time in seconds.
    """

    def __init__(self, home: str | Path, clock: Callable[[], float] = time.time) -> None:
        self.path = Path(home) / NAME
        self.clock = clock
        self._late: dict[str, Entry] = {}

    @contextmanager
    def writing(self) -> Iterator[Books]:
        """A transaction that may write. First it closes what was abandoned and writes what came late.

        Raises:
            RlCliError: The file cannot be used.
        """
        late = dict(self._late)
        with transaction(self.path) as db:
            books = Books(db, self.clock())
            for entry in late.values():
                books.put(entry)
            books.close_abandoned()
            yield books
        for id in late:
            self._late.pop(id, None)

    @contextmanager
    def reading(self) -> Iterator[Books]:
        """A transaction that only reads. Where nothing was ever spent the books are empty."""
        with transaction(self.path, write=False) if self.path.exists() else nothing() as db:
            yield Books(db, self.clock())

    @contextmanager
    def looking(self) -> Iterator[Books]:
        """A copy of the books in memory in which what was abandoned is closed, as the next writer will do."""
        with self.reading() as books, copy_of(books.db) as db:
            copied = Books(db, self.clock())
            copied.close_abandoned()
            yield copied

    def reserve(self, entry: Entry, bounds: Sequence[Bound] = ()) -> None:
        """Writes a reservation if every bound leaves room for it, in one step over all processes.

        Raises:
            OverBudget: One does not.
            RlCliError: The file cannot be used.
        """
        with self.writing() as books:
            books.check(entry, bounds)
            books.put(entry)

    def finish(self, entry: Entry, also: Callable[[Books], None] | None = None) -> RlCliError | None:
        """Writes an entry that is closed. What cannot be written now is written with the next transaction.

        Until then its reservation stands, so that nothing is forgotten.

        Args:
            also: Done in the same transaction.

        Returns:
            Why it could not be written now.
        """
        self._late[entry.id] = entry
        try:
            with self.writing() as books:
                if also:
                    also(books)
        except RlCliError as error:
            return error
        return None

    def today(self) -> str:
        return local_day(self.clock())


def local_day(seconds: float) -> str:
    """The local date of a Unix time, as 2026-11-29."""
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _any_alive(owners: str) -> bool | None:
    """Whether one of an entry's owners still runs; None if that cannot be known here."""
    try:
        states = [ProcessIdentity.from_dict(owner).alive() for owner in json.loads(owners)]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return True if True in states else None if None in states else False


def _parts(entry: Entry, scope: str) -> list[int]:
    """What an entry adds to the sums: whole numbers, which no order of adding changes."""
    counts_hours = entry.kind == ("run" if scope == "run" else "turn")
    amounts = entry.amounts if counts_hours else replace(entry.amounts, hours=0.0)
    return [round(amounts.of(unit) * SCALE[unit]) for unit in UNITS]


def _amounts(parts: Sequence[int] | None) -> Amounts:
    if parts is None:
        return NOTHING
    dollars, tokens, gpu_hours, hours = (part / SCALE[unit] for part, unit in zip(parts, UNITS, strict=True))
    return Amounts(dollars, round(tokens), gpu_hours, hours)
