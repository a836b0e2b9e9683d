"""What the ledger says of one request, run or turn."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rl_cli.core.processes import ProcessIdentity
from rl_cli.spending.units import NOTHING, UNITS, Amounts, believable

if TYPE_CHECKING:
    import sqlite3


@dataclass
class Entry:
    """One request, run or turn."""

    kind: str
    """request, run or turn."""
    amounts: Amounts = NOTHING
    """While it is reserved, the most that it may take."""
    least: Amounts = NOTHING
    """What it must have taken if its owners end without a word."""
    state: str = "reserved"
    session: str | None = None
    run: str | None = None
    model: str | None = None
    priced: bool = True
    """False: it costs money and the price is not known; its dollars are 0."""
    estimated: bool = False
    """The amounts are our own estimate."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    requests: int = 1
    """Of a batch: all that share this entry, so far."""
    owners: list[ProcessIdentity] = field(default_factory=lambda: [ProcessIdentity.current()])
    """It is abandoned when all of them have ended."""
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    time: float = 0.0
    """Unix time of the reservation; 0: when it is first written."""
    closed: float | None = None
    day: str = ""
    """The local date that it counts for, as 2026-11-29; empty: that of `time`."""
    beat: float = 0.0
    """Unix time at which it was last written."""

    def keep_within_bounds(self) -> None:
        """Takes out what nobody can have taken: one such entry would spoil every sum."""
        counts = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens")
        bounded: dict[str, Any] = {name: int(believable("tokens", getattr(self, name))) for name in counts}
        bounded |= {name: getattr(self, name).believable() for name in ("amounts", "least")}
        for name, value in bounded.items():
            if value != getattr(self, name):
                self.estimated = True
                setattr(self, name, value)


_SIMPLE = (
    *("id", "kind", "state", "time", "closed", "day", "session", "run", "model", "priced", "estimated"),
    *("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "requests", "beat"),
)


def to_row(entry: Entry) -> dict[str, Any]:
    """Column -> value."""
    row = {name: getattr(entry, name) for name in _SIMPLE}
    row |= {unit: entry.amounts.of(unit) for unit in UNITS}
    owners = [owner.to_dict() for owner in entry.owners]
    return row | {"least": json.dumps(entry.least.to_dict()), "owners": json.dumps(owners)}


def from_row(row: sqlite3.Row) -> Entry:
    """The entry that was written as this row."""
    values: dict[str, Any] = {name: row[name] for name in _SIMPLE}
    values["priced"], values["estimated"] = bool(row["priced"]), bool(row["estimated"])
    values["amounts"] = Amounts(*(row[unit] for unit in UNITS))
    values["least"] = Amounts.from_dict(json.loads(row["least"]))
    values["owners"] = [ProcessIdentity.from_dict(owner) for owner in json.loads(row["owners"])]
    return Entry(**values)
