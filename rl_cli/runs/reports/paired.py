"""Two measurements of the same problems: which changed, and whether that is more than chance.

The test is McNemar's in its exact form: of the problems whose answer changed, as many should have become
right as wrong if nothing had changed but chance. The interval of the difference is Newcombe's for paired
shares (Statistics in Medicine 17:2635, 1998, method 10). Both speak of chance in the problems, not between
seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rl_cli.core.files import read_jsonl
from rl_cli.runs.outcome import interval, signed
from rl_cli.runs.run_dir import RunDir

Answers = dict[str, bool | None]


@dataclass(frozen=True)
class Paired:
    """What became of n problems from a first measurement to a second."""

    n: int
    gained: int
    """Wrong in the first, right in the second."""
    lost: int
    """Right in the first, wrong in the second."""
    p: float
    """Of a change at least as one-sided, in either direction, if both are equally good."""
    difference: float
    """Share right in the second minus that in the first."""
    low: float
    high: float
    """95 % interval of the difference."""

    def sentence(self) -> str:
        p = f"{self.p:.2g}" if self.p > 1e-16 else "below 1e-16"
        return (
            f"Of {self.n} problems {self.gained} are newly right and {self.lost} newly wrong: difference "
            f"{signed(self.difference, 4)}, 95 % interval {signed(self.low, 4)} to {signed(self.high, 4)}; "
            f"p = {p} (exact McNemar test on the same problems)."
        ).replace("p = below", "p below")


def answers(run: RunDir, which: str) -> Answers:
    """{task id: whether it was answered right} of an evaluation; empty where the run kept none.

    Args:
        run: The run.
        which: untrained, initial, best or final.
    """
    found: Answers = {}
    for row in read_jsonl(run.path / "evaluations" / f"{which}.jsonl"):
        if (task := row.get("task_id")) is not None:
            correct = row.get("correct")
            found[str(task)] = correct if isinstance(correct, bool) else None
    return found


def compare_answers(first: Answers, second: Answers) -> Paired | str:
    """The paired test of two measurements, or why there is none."""
    if not first or not second:
        return "the single answers were not kept"
    if first.keys() != second.keys():
        both = len(first.keys() & second.keys())
        return f"the problems differ: {len(first)} and {len(second)}, of which {both} are the same"
    pairs = {task: (first[task], second[task]) for task in first}
    judged = {task: pair for task, pair in pairs.items() if None not in pair}
    if not judged:
        return "no problem was judged both times"
    return paired(
        {task: bool(before) for task, (before, _) in judged.items()},
        {task: bool(after) for task, (_, after) in judged.items()},
    )


def paired(first: Mapping[str, bool], second: Mapping[str, bool]) -> Paired:
    """The test of two measurements of the same problems, at least one."""
    n = len(first)
    gained = sum(second[task] and not first[task] for task in first)
    lost = sum(first[task] and not second[task] for task in first)
    both = sum(first[task] and second[task] for task in first)
    low, high = paired_interval(both, gained, lost, n - both - gained - lost)
    return Paired(n, gained, lost, mcnemar(gained, lost), (gained - lost) / n, low, high)


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided p: twice the smaller tail of a fair coin thrown gained + lost times, at most 1."""
    thrown, fewer = gained + lost, min(gained, lost)
    ways = term = 1
    for i in range(fewer):
        term = term * (thrown - i) // (i + 1)
        ways += term
    return min(1.0, 2 * ways / 2**thrown)


def paired_interval(both: int, gained: int, lost: int, neither: int) -> tuple[float, float]:
    """95 % interval of the second share minus the first, of the same problems (Newcombe 1998)."""
    n = both + gained + lost + neither
    second, first = (both + gained) / n, (both + lost) / n
    (low_2, high_2), (low_1, high_1) = interval(second, n), interval(first, n)
    phi = _correlation(both, gained, lost, neither)
    below = _side(second - low_2, high_1 - first, phi)
    above = _side(high_2 - second, first - low_1, phi)
    return second - first - below, second - first + above


def _side(one: float, other: float, phi: float) -> float:
    return math.sqrt(max(0.0, one * one - 2 * phi * one * other + other * other))


def _correlation(both: int, gained: int, lost: int, neither: int) -> float:
    """Of the two answers to one problem, with Newcombe's continuity correction."""
    sums = (both + gained) * (lost + neither) * (both + lost) * (gained + neither)
    if not sums:
        return 0.0
    product: float = both * neither - gained * lost
    if product > 0:
        product = max(product - (both + gained + lost + neither) / 2, 0)
    return product / math.sqrt(sums)
