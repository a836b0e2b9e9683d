"""The health rules on thousands of synthetic runs: what is found, how soon, and how often in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from rl_cli.runs.synthetic import FAILURES, HARD
from tests.runs.synthetic_bench import alarms, delay, table

SEEDS = range(10_000, 10_100)
"""Others than the rules were tuned on."""
HEALTHY = range(20_000, 20_300)


def _all(function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
    with ProcessPoolExecutor() as pool:
        return list(pool.map(function, *arguments, chunksize=5))


@pytest.mark.soak
def test_each_failure_is_found_and_healthy_runs_are_left_alone() -> None:
    found = {kind: _all(delay, [kind] * len(SEEDS), SEEDS) for kind in FAILURES}
    said = _all(alarms, HEALTHY)
    table(found)
    loud = {seed: alarms for seed, alarms in zip(HEALTHY, said, strict=True) if alarms}
    print(f"healthy: {len(loud)} of {len(HEALTHY)} alarmed: {loud}")
    for kind, delays in found.items():
        if kind in HARD:
            assert all(d is not None and d <= 3 for d in delays), kind
        else:
            assert sum(d is not None for d in delays) >= 0.95 * len(delays), kind
    assert len(loud) <= 0.01 * len(HEALTHY)
