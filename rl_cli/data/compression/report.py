"""What became of each row, and of all of them together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """What became of a row."""

    FITS = "fits"
    """It needs nothing."""
    COMPRESSED = "compressed"
    CANNOT_FIT = "cannot_fit"
    """What has to stay is too long: it is as it was."""
    FAILED = "failed"
    """There is no summary: it is as it was."""
    UNREADABLE = "unreadable"
    """It holds no conversation in a known form: it is as it was."""
    NO_ROW = "no_row"
    """The line is no JSON object: it is left out."""
    NOT_SAMPLED = "not_sampled"
    """It was not drawn: it is left out."""


@dataclass
class RowReport:
    """One row. Tokens and turns are None where nobody could count them."""

    file: int
    """Which of the input files, from 0."""
    line: int
    status: Status
    key: str | None = None
    """The row's own."""
    reason: str = ""
    tokens_before: int | None = None
    tokens_after: int | None = None
    turns_before: int | None = None
    turns_after: int | None = None
    over_limit: bool = False
    """As it is written."""
    summaries: int = 0
    shortened_results: int = 0
    calls: int = 0
    """Requests for its summaries, repeated ones and those of earlier passes included."""
    cost_usd: float = 0.0
    paid: list[str] = field(default_factory=list)
    """The keys of the summaries in the side ledger."""


COUNTED = ("tokens_before", "tokens_after", "turns_before", "turns_after", "summaries", "shortened_results")
MOST_REASONS = 20
"""That are listed; each row's own stands in its report."""
_NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")


class Totals:
    """All rows so far."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter(dict.fromkeys(Status, 0))
        self._sums: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self._reasons: Counter[str] = Counter()
        self._first: dict[str, RowReport] = {}
        self._over_limit = 0
        self._calls, self._cost_usd = 0, 0.0
        self._paid: set[bytes] = set()

    def add(self, report: RowReport) -> None:
        """Takes one row in. A summary that several rows share is counted once."""
        self._rows[report.status] += 1
        self._over_limit += report.over_limit
        for name in COUNTED:
            self._sums[name] += getattr(report, name) or 0
        if report.reason:
            kind = f"{report.status}: {_NUMBER.sub('N', report.reason)}"
            self._reasons[kind] += 1
            self._first.setdefault(kind, report)
        keys = {bytes.fromhex(key) for key in report.paid}
        if not keys or keys - self._paid:
            self._calls += report.calls
            self._cost_usd += report.cost_usd
        self._paid |= keys

    @property
    def rows(self) -> int:
        return sum(self._rows.values())

    @property
    def is_complete(self) -> bool:
        """Whether every line was a row, and every row got what it needed."""
        return not (self._rows[Status.FAILED] or self._rows[Status.NO_ROW])

    def count(self, status: Status) -> int:
        return self._rows[status]

    def as_dict(self) -> dict[str, Any]:
        """For people and programs."""
        return {
            "rows": self.rows,
            **{str(status): self._rows[status] for status in Status},
            "over_limit": self._over_limit,
            **{name: self._sums[name] for name in COUNTED},
            "calls": self._calls,
            "cost_usd": round(self._cost_usd, 6),
            "reasons": dict(self._told_reasons()),
        }

    def _told_reasons(self) -> Iterator[tuple[str, int]]:
        """Reasons that differ in their numbers are one: that of the first row."""
        for kind, count in self._reasons.most_common(MOST_REASONS):
            first = self._first[kind]
            so = ", the first" if count > 1 and _NUMBER.search(first.reason) else ""
            yield f"{first.status}{so}: {first.reason}", count


def to_line(report: RowReport) -> dict[str, Any]:
    return asdict(report)


def from_line(line: dict[str, Any]) -> RowReport:
    return RowReport(**{**line, "status": Status(line["status"])})
