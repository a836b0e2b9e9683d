"""Which rows a merge keeps, by what they are marked with and by their score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rl_cli.data.rows import Row

DROPPABLE = ("invented_tool", "empty_answer", "incomplete", "no_reasoning")
"""Marks that rows can be discarded for; the first that a row has is the reason."""


@dataclass(frozen=True)
class Filters:
    """What a merge was asked to discard. Nothing is lost: the ledger keeps all rows."""

    drop: frozenset[str] = frozenset({"invented_tool"})
    """Of DROPPABLE."""
    min_score: float | None = None
    """Discard rows below it, and those without a score."""

    @classmethod
    def chosen(
        cls,
        require_reasoning: bool,
        keep_invented: bool,
        drop_empty: bool,
        drop_incomplete: bool,
        min_score: float | None,
    ) -> Filters:
        """As a person words them."""
        wanted = {
            "no_reasoning": require_reasoning,
            "invented_tool": not keep_invented,
            "empty_answer": drop_empty,
            "incomplete": drop_incomplete,
        }
        return cls(frozenset(mark for mark, dropped in wanted.items() if dropped), min_score)

    def reason(self, row: Row) -> str | None:
        """Why a row is discarded; None: it is kept."""
        for mark in DROPPABLE:
            if mark in self.drop and mark in row.get("marks", ()):
                return mark
        if self.min_score is None:
            return None
        score = row.get("score")
        if score is None:
            return "no_score"
        return "low_score" if score < self.min_score else None

    def to_dict(self) -> dict[str, Any]:
        return {"drop": sorted(self.drop), "min_score": self.min_score}
