"""How one sample ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from rl_cli.core.redaction import redact
from rl_cli.data.batch.entries import Entry
from rl_cli.data.rows import Row

SPOILT = frozenset({"provider", "sandbox", "worker", "internal", "deadline"})
"""Reasons that tell of the machinery, not of the sample: in a row they stop the batch. `deadline` is of those
that got no answer before theirs; with one they are done, and incomplete."""


@dataclass(frozen=True)
class Outcome:
    """How one sample ended.

    `open` is one that has to be tried again another time: the provider was down, or the budget used up.
    """

    key: str
    state: Literal["done", "failed", "open"]
    row: Row | None = None
    """None: nothing was paid for."""
    reason: str | None = None
    """Why it failed or is open, in one word."""
    error: str | None = None
    """The last error, in one line that begins with its class."""
    attempts: int = 1
    """How often that which failed was tried."""

    @property
    def is_spoilt(self) -> bool:
        return self.state == "failed" and self.reason in SPOILT


def entry_of(outcome: Outcome, masked: bool) -> Entry:
    """The line of the ledger; `masked`: without secrets, and a row that had some says so."""
    entry = Entry(
        key=outcome.key,
        state=outcome.state,
        reason=outcome.reason,
        attempts=outcome.attempts,
        row=outcome.row,
    )
    if outcome.error:
        entry["error"] = outcome.error
    if not masked:
        return entry
    found = cast(Entry, redact(entry))
    if found is not entry and found["row"]:
        found["row"]["marks"] = sorted({*found["row"]["marks"], "redacted"})
    return found
