"""The compressor at full size: its rate beside bare tokenising, and its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.compressor import ROWS, TOKENS, make_rows, measure
from tests.data.compression.kit import read_rows, save_tokenizer

WANTED = 0.75


@pytest.mark.soak
@pytest.mark.alone
def test_rate_and_memory(tmp_path: Path) -> None:
    """At least 0.75 of the rate of bare tokenising, below 250 MB; nothing lost, nothing over the limit."""
    tokenizer = save_tokenizer(tmp_path / "tokenizer", 32_000)
    rows = make_rows(tmp_path / "rows.jsonl", ROWS, TOKENS)
    found = measure(tmp_path, rows, tokenizer, WANTED)
    print(found)
    assert found.ratio >= WANTED
    assert found.cpu_ratio >= WANTED
    assert found.ours.peak_mb < 250
    assert found.report["over_limit"] == 0
    made, given = read_rows(tmp_path / "out-0.jsonl"), read_rows(rows)
    assert [row["key"] for row in made] == [row["key"] for row in given]
