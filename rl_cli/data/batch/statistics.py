"""Figures over the samples of a batch, the same whatever the order in which they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rl_cli.data.batch.entries import CALL_COUNTS, COUNTS, Entry
from rl_cli.data.rows import Row

NANO = 1_000_000_000
"""Sums of dollars and scores are kept in whole billionths: those of floats depend on their order."""


class Tally:
    """Counts samples as they come.

    Rows that were discarded count like the others, and so does what failed ones have used: it is paid for.
    """

    def __init__(self) -> None:
        self.done = 0
        self.failed: Counter[str] = Counter()
        self._not_final: Counter[str] = Counter()
        self._marks: Counter[str] = Counter()
        self._usage: Counter[str] = Counter()
        self._nano_dollars: int | None = None
        self._unpriced = 0
        self._tools: dict[str, Counter[str]] = {}
        self._reasoning: Counter[str] = Counter()
        self._scores = _Scores()

    def add(self, entry: Entry) -> None:
        """Takes in one sample; each is given once."""
        row = entry["row"]
        if entry["state"] == "failed":
            self.failed[entry["reason"] or "unknown"] += 1
        elif row is not None:
            self.done += 1
            self._describe(row)
        if row is not None:
            self._spent(row)

    def add_other(self, entry: Entry) -> None:
        """Takes in what was paid for of a sample that ended otherwise, or has not ended."""
        self._not_final["open" if entry["state"] == "open" else "retried"] += 1
        if entry["row"] is not None:
            self._spent(entry["row"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "failed": dict(sorted(self.failed.items())),
            **{name: self._not_final[name] for name in ("open", "retried")},
            "marks": dict(sorted(self._marks.items())),
            "requests": self._usage["requests"],
            "tokens": {name: self._usage[f"{name}_tokens"] for name in ("input", "output", "cached")},
            "cost_usd": None if self._nano_dollars is None else self._nano_dollars / NANO,
            "unpriced": self._unpriced,
            "tool_stats": {
                name: {field: counts[field] for field in CALL_COUNTS}
                for name, counts in sorted(self._tools.items())
            },
            "reasoning": {name: self._reasoning[name] for name in ("turns", "with")},
            "score": self._scores.to_dict(),
        }

    def _describe(self, row: Row) -> None:
        self._marks.update(row.get("marks", ()))
        self._reasoning.update(_known(row.get("reasoning", {}), COUNTS["reasoning"]))
        for tool in row.get("tools", ()):
            self._tools.setdefault(tool["function"]["name"], Counter())
        for name, counts in row.get("tool_stats", {}).items():
            self._tools.setdefault(name, Counter()).update(_known(counts, CALL_COUNTS))
        if (score := row.get("score")) is not None:
            self._scores.add(score)

    def _spent(self, row: Row) -> None:
        self._usage.update(_known(row.get("usage", {}), COUNTS["usage"]))
        cost = row.get("cost_usd")
        if cost is None:
            self._unpriced += 1
        else:
            self._nano_dollars = (self._nano_dollars or 0) + round(cost * NANO)


def _known(counts: Mapping[str, Any], names: Iterable[str]) -> dict[str, int]:
    """A later version may count more, in whatever way."""
    return {name: counts.get(name, 0) for name in names}


class _Scores:
    def __init__(self) -> None:
        self._count = self._nano = 0
        self._least = self._most = 0.0

    def add(self, score: float) -> None:
        self._least = min(score, self._least) if self._count else score
        self._most = max(score, self._most) if self._count else score
        self._count += 1
        self._nano += round(score * NANO)

    def to_dict(self) -> dict[str, Any] | None:
        if not self._count:
            return None
        mean = self._nano / self._count / NANO
        return {"count": self._count, "mean": mean, "min": self._least, "max": self._most}
