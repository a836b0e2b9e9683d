"""How well the health rules tell failing runs from healthy ones, in figures."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from statistics import median

from rl_cli.runs.health import AlertGate, Limits, inspect, view_of
from rl_cli.runs.progress import Progress
from rl_cli.runs.synthetic.failures import FAILURES, checks, failing, healthy


def delay(kind: str, seed: int) -> int | None:
    """Checks from the failure's data to the finding that names it, 1 at the first; None if it is missed."""
    run, rules = failing(kind, seed), FAILURES[kind][0]
    count = 0
    for row, view in checks(run):
        if row < run.begins - 1:
            continue
        findings = inspect(view)
        count += row >= run.begins and not (run.ends == "stalled" and view.quiet_seconds < 900)
        if any(finding.rule in rules for finding in findings):
            return max(1, count)
    return None


def redrawn(kind: str, seed: int) -> int:
    """Runs in which the failure could not be seen, and that were passed over for the one that is tried."""
    return failing(kind, seed).redrawn


def alarms(seed: int) -> list[str]:
    """What is said about a healthy run, of whatever severity, after the gate."""
    gate, said = AlertGate(20), list[str]()
    for row, view in checks(healthy(seed)):
        said += [f"{f.rule}@{row}" for f in gate.passed(inspect(view), row)]
    return said


def most_likely_below(alarmed: int, runs: int) -> float:
    """The share of alarmed runs that the true one is below with 95 % confidence (Wilson)."""
    z, share = 1.645, alarmed / runs
    middle = share + z * z / (2 * runs)
    return (middle + z * math.sqrt(share * (1 - share) / runs + (z / (2 * runs)) ** 2)) / (1 + z * z / runs)


def seconds_per_check(steps: int) -> float:
    """CPU seconds of one inspection of a run of so many steps, whose extremes are known already."""
    progress, rows = Progress(steps), healthy(3, steps=200, trainer="own").rows
    progress.feed([{**rows[i % 200], "step": i + 1} for i in range(steps)], [])
    limits = Limits(total_steps=round(1.4 * steps))
    inspect(view_of(progress, limits))
    began = time.process_time()
    for _ in range(20):
        inspect(view_of(progress, limits))
    return (time.process_time() - began) / 20


def table(found: Mapping[str, Sequence[int | None]], redraws: Mapping[str, Sequence[int]]) -> None:
    """Prints, for each kind, the share that was found, how many checks after its data, and what it is a share
    of: runs in which the failure cannot be seen were passed over, and counted by `redrawn`."""
    print(f"\n{'failure':<20} {'found':>6} {'median':>7} {'latest':>7} {'redrawn':>8}")
    for kind, delays in found.items():
        known = [d for d in delays if d is not None]
        late = f"{median(known):>7.0f} {max(known):>7}" if known else f"{'':>7} {'':>7}"
        passed_over = sum(redraws[kind]) / (sum(redraws[kind]) + len(delays))
        print(f"{kind:<20} {len(known) / len(delays):>6.0%} {late} {passed_over:>8.0%}")
    print("found: of the failures that can be seen. median, latest: checks after the failure's data.")
    print(
        "redrawn: share of all drawn runs that were passed over, since nobody would see the failure in them."
    )
