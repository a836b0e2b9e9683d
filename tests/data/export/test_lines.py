"""Lines of JSON load with datasets.load_dataset whatever the first ones hold, and come back as they were."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.messages import assistant, tool_call, tool_result, user
from rl_cli.data.compression.from_value import FromValue
from rl_cli.data.export.exporting import Format, export
from rl_cli.data.export.source import Source
from rl_cli.data.export.trl import to_trl
from rl_cli.data.hygiene.masking import Masker
from tests.data.rows_kit import SEARCH, calling, plain, row, schema, varied, write_rows

DEEP = schema("my tool", ключ={"type": "object", "properties": {"a": {"anyOf": [{}, {"type": "null"}]}}})
OTHERWISE = schema("my tool", ключ={"type": "string", "enum": ["a", 1, None]})
"""The same tool with another schema."""


def conflicting() -> list[dict[str, Any]]:
    """Calls whose arguments share names, but not types; tools that share names, but not schemas."""
    values: list[Any] = [1, "2", 0.5, [], [1, "a"], {}, {"x": {}}, {"x": [None]}, None, True, 2**64 - 1]
    same = [calling(n, DEEP, json.dumps({"a": value})) for n, value in enumerate(values, 100)]
    calls = [tool_call(f"c{n}", "my tool", json.dumps({"ключ": n, "": {}})) for n in (1, 2)]
    parallel = [
        user("go"),
        assistant(None, calls),
        *(tool_result(call, "") for call in calls),
        assistant("ok"),
    ]
    return [*same, row(200, parallel, [OTHERWISE, SEARCH]), *varied()]


PLAIN = [plain(n, key=None if n % 2 else n) for n in range(1, 60)]
ALONE = row(300, [user("Nobody answers.")], [])
ORDERS = {
    "plain rows first": [*PLAIN, *conflicting()],
    "calls first": [*reversed(conflicting()), *PLAIN],
    "a row of one message first": [ALONE, *PLAIN, *conflicting()],
}


def loaded(folder: Path, rows: list[dict[str, Any]], format_: Format, **how: Any) -> Any:
    from datasets import load_dataset

    source = Source(write_rows(folder / "rows.jsonl", rows), "rows")
    path = folder / "out.jsonl"
    assert export(source, format_, path, Masker(), None, print).written == len(rows)
    return load_dataset("json", data_files=str(path), split="train", cache_dir=str(folder / "cache"), **how)


@pytest.mark.train
@pytest.mark.parametrize("order", ORDERS)
def test_dst_02_trl_lines_load_in_any_order(tmp_path: Path, order: str) -> None:
    """The columns are settled by the first 4 KB of 40."""
    rows = ORDERS[order]
    back = loaded(tmp_path, rows, "trl", chunksize=4000)
    for number, (example, given) in enumerate(zip(back, rows, strict=True)):
        wanted = to_trl(given)
        if number == 0 and len({frozenset(each) for each in wanted["messages"]}) == 1:
            assert example["messages"][0].pop("name", "none") is None  # without it these would be a struct
        assert example["messages"] == wanted["messages"]
        assert json.loads(example["tools"]) == wanted["tools"]
        assert example["key"] == str(given.get("key", ""))


@pytest.mark.train
@pytest.mark.parametrize("order", ORDERS)
def test_dst_02_sharegpt_lines_load_in_any_order_and_come_back(tmp_path: Path, order: str) -> None:
    rows = ORDERS[order]
    back = loaded(tmp_path, rows, "sharegpt", chunksize=4000)
    again = Source(write_rows(tmp_path / "again.jsonl", list(back)), "again")
    assert [(each["messages"], each["tools"]) for each in again.rows(print)] == [
        (each["messages"], each["tools"]) for each in rows
    ]
    beside = [FromValue(each["conversations"], each["system_messages"]).beside for each in back]
    assert beside.count(["Be brief."]) == sum(each["messages"][0]["role"] == "system" for each in rows)


def test_lines_with_numbers_that_no_loader_reads_are_left_out(tmp_path: Path) -> None:
    """One of them would keep the reader from seeing how the other rows of a file differ."""
    rows = [calling(n, SEARCH, json.dumps({"n": n})) for n in (2**64, -(2**63) - 1, 2**64 - 1)]
    source = Source(write_rows(tmp_path / "rows.jsonl", rows), "rows")
    report = export(source, "trl", tmp_path / "out.jsonl", Masker(), None, print)
    assert (report.written, list(report.left_out.values())) == (1, [2])


@pytest.mark.train
@pytest.mark.soak
@pytest.mark.parametrize("format_", ["trl", "sharegpt"])
def test_files_of_more_than_ten_megabytes_load_as_they_are(tmp_path: Path, format_: Format) -> None:
    long = [row(n, [user("a b " * 2**18), assistant("y")], []) for n in range(30)]
    assert len(loaded(tmp_path, [*long, *conflicting()], format_)) == 30 + len(conflicting())
