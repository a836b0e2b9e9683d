"""What was spent, on what, and what the budgets leave: figures for people and programs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.spending.ledger import Books, Ledger
from rl_cli.spending.limits import Limits
from rl_cli.spending.units import UNITS

GROUPS = {"sessions": "session", "runs": "run", "models": "model"}

SUMS = """
    SUM(CASE WHEN kind = 'request' AND state <> 'released' THEN requests ELSE 0 END) AS requests,
    SUM(input_tokens * closed_) AS input_tokens, SUM(output_tokens * closed_) AS output_tokens,
    SUM(cached_tokens * closed_) AS cached_tokens,
    SUM(dollars * closed_) AS dollars, SUM(tokens * closed_) AS tokens, SUM(gpu_hours * closed_) AS gpu_hours,
    SUM(CASE WHEN kind = 'turn' THEN hours * closed_ ELSE 0.0 END) AS hours,
    SUM(CASE WHEN kind = 'run' THEN hours * closed_ ELSE 0.0 END) AS run_hours,
    SUM(dollars * (state = 'reserved')) AS reserved_dollars,
    SUM(tokens * (state = 'reserved')) AS reserved_tokens,
    SUM(gpu_hours * (state = 'reserved')) AS reserved_gpu_hours,
    SUM(dollars * (state = 'abandoned')) AS abandoned_dollars,
    SUM(tokens * (state = 'abandoned')) AS abandoned_tokens,
    SUM(gpu_hours * (state = 'abandoned')) AS abandoned_gpu_hours,
    COUNT(CASE WHEN state = 'abandoned' THEN 1 END) AS abandoned,
    SUM(CASE WHEN kind <> 'turn' AND state <> 'released' AND NOT priced THEN requests ELSE 0 END) AS unpriced
"""
SOURCE = "(SELECT *, state IN ('settled', 'abandoned') AS closed_ FROM entries)"


def overview(
    ledger: Ledger, limits: Limits, session: str | None = None, run: str | None = None, day: str | None = None
) -> dict[str, Any]:
    """What was spent in a session, for a run, on a day; of several, what belongs to all of them.

    Returns:
        {"session", "run", "day", "total": {...}, "sessions": [...], "runs": [...], "models": [...],
        "budgets": [...]}. A total has requests, tokens (those of settled and abandoned requests), dollars,
        gpu_hours, hours (of turns), run_hours; reserved_* and abandoned_* of dollars, tokens and gpu_hours
        (what is abandoned is a part of what is spent); unpriced, the number of requests and runs whose price
        was not known and that count as $0. Lists are sorted by dollars, then tokens.

    Raises:
        RlCliError: The ledger cannot be read.
    """
    chosen = {name: value for name, value in (("session", session), ("run", run), ("day", day)) if value}
    where = " AND ".join(f"{name} = :{name}" for name in chosen) or "1"
    with _settled(ledger) as books:
        query = f"SELECT {SUMS} FROM {SOURCE} WHERE {where}"
        total = {name: value or 0 for name, value in dict(books.db.execute(query, chosen).fetchone()).items()}
        answer: dict[str, Any] = {"session": session, "run": run, "day": day, "total": total}
        for plural, column in GROUPS.items():
            query = (
                f"SELECT {column} AS id, MAX(time) AS time, {SUMS} FROM {SOURCE} "
                f"WHERE {where} AND {column} IS NOT NULL GROUP BY {column} ORDER BY dollars DESC, tokens DESC"
            )
            answer[plural] = [dict(row) for row in books.db.execute(query, chosen)]
        answer["budgets"] = _budgets(books, limits, session, run, day or ledger.today())
    return answer


@contextmanager
def _settled(ledger: Ledger) -> Iterator[Books]:
    """The books, in which nothing is reserved for who has ended, also where they cannot be written."""
    look = ledger.looking
    with suppress(RlCliError):
        if ledger.path.exists():
            with ledger.writing():
                look = ledger.reading
    with look() as books:
        yield books


def known_ids(ledger: Ledger, column: str) -> list[str]:
    """The sessions or runs that have entries, newest first."""
    assert column in ("session", "run")
    query = (
        f"SELECT {column} FROM entries WHERE {column} IS NOT NULL GROUP BY {column} ORDER BY MAX(time) DESC"
    )
    with ledger.reading() as books:
        return [row[0] for row in books.db.execute(query)]


def _budgets(
    books: Books, limits: Limits, session: str | None, run: str | None, day: str
) -> list[dict[str, Any]]:
    """One row per budget that bounds what was asked about; the share is that of what is spent."""
    rows = []
    for bound in limits.bounds(session=session, run=run, day=day):
        totals = books.totals(bound.scope, bound.name)
        for unit in (unit for unit in UNITS if unit in bound.limits):
            spent, limit = totals.spent.of(unit), bound.limits[unit]
            row = {"scope": bound.scope, "name": bound.name, "unit": unit, "limit": limit, "spent": spent}
            reserved, share = totals.reserved.of(unit), spent / limit if limit else 1.0
            rows.append({**row, "reserved": reserved, "share": share})
    return rows
