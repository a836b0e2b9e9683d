"""What a batch costs beside a bare loop over the same prompts, and how it begins with many of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import batch

LEAST_THROUGHPUT = 0.8
"""Of the bare loop's."""
MOST_CPU = 1.6
"""Times the bare loop's."""
LATEST_FIRST = 1.0
"""Seconds after the SDK's import."""
MOST_MORE_MIB = 80.0


@pytest.mark.soak
@pytest.mark.alone
@pytest.mark.parametrize("in_flight", batch.ITEMS)
@pytest.mark.parametrize("sandbox", [batch.NONE, "local"])
def test_a_batch_is_as_fast_as_a_bare_loop(tmp_path: Path, sandbox: str, in_flight: int) -> None:
    batch.compile_modules()
    compared = batch.compare(tmp_path, sandbox, in_flight)
    print(compared)
    assert compared.throughput >= LEAST_THROUGHPUT
    assert compared.cpu <= MOST_CPU


@pytest.mark.soak
@pytest.mark.alone
def test_many_rows_delay_nothing_and_stay_on_the_disk(tmp_path: Path) -> None:
    batch.compile_modules()
    start = batch.start_and_memory(tmp_path)
    print(start)
    assert start.first - start.sdk <= LATEST_FIRST
    assert start.more_mib <= MOST_MORE_MIB
