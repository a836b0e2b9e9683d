"""The health rules on thousands of synthetic runs: what is found, how soon, and how often in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from rl_cli.runs.synthetic.failures import FAILURES, HARD
from tests.runs import textbook_runs
from tests.runs.synthetic_bench import alarms, delay, most_likely_below, redrawn, seconds_per_check, table

pytestmark = [pytest.mark.soak, pytest.mark.alone]
SEEDS = range(840_000, 840_100)
"""Others than the rules were tuned on."""
HEALTHY = range(850_000, 851_000)
TEXTBOOK = range(860_000, 860_100)
TEXTBOOK_HEALTHY = range(870_000, 870_300)


def _all(function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(function, *arguments, chunksize=5))


def test_each_failure_is_found_and_healthy_runs_are_left_alone() -> None:
    found = {kind: _all(delay, [kind] * len(SEEDS), SEEDS) for kind in FAILURES}
    said = _all(alarms, HEALTHY)
    table(found, {kind: _all(redrawn, [kind] * len(SEEDS), SEEDS) for kind in FAILURES})
    loud = {seed: alarms for seed, alarms in zip(HEALTHY, said, strict=True) if alarms}
    bound = most_likely_below(len(loud), len(HEALTHY))
    print(f"healthy: {len(loud)} of {len(HEALTHY)} alarmed (95 %: below {bound:.2%}): {loud}")
    for kind, delays in found.items():
        if kind in HARD:
            assert all(d is not None and d <= 3 for d in delays), kind
        else:
            assert sum(d is not None for d in delays) >= 0.95 * len(delays), kind
    assert len(loud) <= 0.01 * len(HEALTHY)


def test_textbook_failures_are_found_and_textbook_runs_are_left_alone() -> None:
    for kind, (_, rules) in textbook_runs.FAILURES.items():
        heard = _all(textbook_runs.heard, [kind] * len(TEXTBOOK), TEXTBOOK)
        found = sum(bool(said & rules) for said in heard)
        print(f"textbook {kind:<20} {found} of {len(TEXTBOOK)} found")
        assert found >= 0.95 * len(TEXTBOOK), kind
    loud = [said for said in _all(textbook_runs.heard, [None] * 300, TEXTBOOK_HEALTHY) if said]
    print(f"textbook healthy: {len(loud)} of 300 alarmed: {loud}")
    assert len(loud) <= 3


def test_a_check_costs_the_same_after_100_000_steps() -> None:
    short, long = seconds_per_check(1_000), seconds_per_check(100_000)
    print(f"a check: {short * 1000:.2f} ms after 1,000 steps, {long * 1000:.2f} ms after 100,000")
    assert long < 2 * short
