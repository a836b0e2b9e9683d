"""The budgets of the settings as bounds on what a session, a run and a day may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rl_cli.spending.units import in_words

if TYPE_CHECKING:
    from rl_cli.core.settings import Settings

WARN_SHARE = 0.8
"""From this share of a budget on, a person is told, once."""
SLACK = 1e-9
"""Sums of floats that are this close are equal."""
WHOSE = {"session": "this session's", "run": "this run's", "day": "today's"}


@dataclass(frozen=True)
class Bound:
    """What one session, run or day may take."""

    scope: str
    """session, run or day."""
    name: str
    """The session's id, the run's, or the date."""
    limits: Mapping[str, float]
    """Unit -> most of it; units without a bound are missing."""


@dataclass(frozen=True)
class Limits:
    """Unit -> most of it, for each session, each run and each day."""

    session: Mapping[str, float] = field(default_factory=dict)
    run: Mapping[str, float] = field(default_factory=dict)
    day: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def from_settings(cls, settings: Settings) -> Limits:
        budgets = settings.budgets
        return cls(*({u: v for u, v in (budgets.get(s) or {}).items() if v is not None} for s in WHOSE))

    def bounds(
        self, *, session: str | None = None, run: str | None = None, day: str | None = None
    ) -> list[Bound]:
        """The bounds on a spending that belongs to these."""
        wanted = (("session", session, self.session), ("run", run, self.run), ("day", day, self.day))
        return [Bound(scope, name, limits) for scope, name, limits in wanted if name and limits]


class OverBudget(Exception):
    """A reservation that a budget does not allow. Its text is one line for a person."""

    def __init__(
        self, scope: str, unit: str, limit: float, spent: float, reserved: float, asked: float
    ) -> None:
        self.scope, self.unit, self.limit = scope, unit, limit
        self.spent, self.reserved, self.asked = spent, reserved, asked
        what = f"{WHOSE[scope]} budget of {in_words(unit, limit)}"
        how = "is used up" if spent + reserved >= limit - SLACK else "does not allow this"
        parts = [f"{in_words(unit, spent)} spent"]
        parts += [f"{in_words(unit, reserved)} reserved"] if reserved else []
        parts += [f"up to {in_words(unit, asked)} asked for"] if asked else []
        raise_it = f"to raise it: rl-cli config set budgets.{scope}.{unit} NUMBER"
        super().__init__(f"{what} {how}: {', '.join(parts)} ({raise_it})")
