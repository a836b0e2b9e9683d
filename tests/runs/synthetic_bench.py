"""How well the health rules tell failing runs from healthy ones, in figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from rl_cli.runs.health import AlertGate, inspect
from rl_cli.runs.synthetic import FAILURES, checks, failing, healthy


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


def alarms(seed: int, of: tuple[str, ...] = ("warning", "critical")) -> list[str]:
    """What is said about a healthy run, after the gate."""
    gate, said = AlertGate(20), list[str]()
    for row, view in checks(healthy(seed)):
        said += [f"{f.rule}@{row}" for f in gate.passed(inspect(view), row) if f.severity in of]
    return said


def table(found: Mapping[str, Sequence[int | None]]) -> None:
    """Prints, for each kind, the share that was found and how many checks after its data."""
    print(f"\n{'failure':<20} {'found':>6} {'median':>7} {'latest':>7}   (checks after its data)")
    for kind, delays in found.items():
        known = [d for d in delays if d is not None]
        late = f"{median(known):>7.0f} {max(known):>7}" if known else ""
        print(f"{kind:<20} {len(known) / len(delays):>6.0%} {late}")
