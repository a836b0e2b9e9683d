"""Exported data sets load with datasets.load_dataset whatever the order of rows, and nothing changes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from rl_cli.data.export.exporting import Format, export
from rl_cli.data.export.source import Source
from rl_cli.data.hygiene.masking import Masker
from tests.data.rows_kit import READ, SEARCH, calling, plain, varied, write_rows

pytestmark = pytest.mark.train


def exported(folder: Path, rows: list[dict[str, Any]], format_: Format, name: str) -> Path:
    source = Source(write_rows(folder / "rows.jsonl", rows), "rows")
    bad: list[tuple[int, str]] = []
    report = export(source, format_, folder / name, Masker(), None, lambda *line: bad.append(line))
    assert (report.written, report.left_out.total(), bad) == (len(rows), 0, [])
    return folder / name


def loaded(path: Path, cache: Path) -> Any:
    """As a user does: a folder by its name, a file by its kind."""
    from datasets import load_dataset

    if path.is_dir():
        return load_dataset(str(path), split="train", cache_dir=str(cache))
    return load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(cache))


def whole(loaded_row: dict[str, Any]) -> dict[str, Any]:
    """A loaded row without the columns that are null."""
    return {name: value for name, value in loaded_row.items() if value is not None}


@pytest.mark.parametrize(("format_", "name"), [("parquet", "out.parquet"), ("hf", "set")])
@pytest.mark.parametrize("order", range(3))
def test_dst_05_rows_come_back_as_they_were(tmp_path: Path, format_: Format, name: str, order: int) -> None:
    rows = varied()
    random.Random(order).shuffle(rows)
    back = loaded(exported(tmp_path, rows, format_, name), tmp_path / "cache")
    assert [whole(each) for each in back] == rows


@pytest.mark.parametrize("name", ["set", "out.parquet"])
def test_dst_05_trl_messages_have_objects_and_no_key_that_was_not_there(tmp_path: Path, name: str) -> None:
    rows = varied()
    back = loaded(exported(tmp_path, rows, "trl", name), tmp_path / "cache")
    for example, row in zip(back, rows, strict=True):
        assert (example["tools"] or []) == row["tools"]
        sent = [call for message in row["messages"] for call in message.get("tool_calls", [])]
        got = [call for message in example["messages"] for call in message.get("tool_calls") or []]
        assert [call["function"]["arguments"] for call in got] == [
            json.loads(call["function"]["arguments"]) for call in sent
        ]
        keys = [set(message) - {"reasoning_content"} for message in example["messages"]]
        assert keys == [set(message) - {"reasoning"} for message in row["messages"]]


@pytest.mark.parametrize("format_", ["trl", "hf"])
@pytest.mark.parametrize("turned", [False, True])
def test_dst_02_two_sets_load_as_one_in_both_orders(tmp_path: Path, format_: Format, turned: bool) -> None:
    from datasets import load_dataset

    parts = [[plain(1), plain(2)], [calling(3, SEARCH, '{"city": "Oslo"}'), calling(4, READ, "{}")]]
    files = []
    for number, rows in enumerate(parts):
        (folder := tmp_path / str(number)).mkdir()
        files += [str(path) for path in exported(folder, rows, format_, "set").rglob("*.parquet")]
    files = files[::-1] if turned else files
    back = load_dataset("parquet", data_files=files, split="train", cache_dir=str(tmp_path / "cache"))
    numbers = [int(key[:32], 16) for key in back["key"]]
    assert numbers == ([3, 4, 1, 2] if turned else [1, 2, 3, 4])


def test_dst_03_every_file_has_the_same_columns_for_pyarrow_too(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    rows = varied()
    schemas = []
    for row in rows:
        (folder := tmp_path / row["key"]).mkdir()
        path = exported(folder, [row], "parquet", "one.parquet")
        table = parquet.read_table(path)
        schemas.append(table.schema)
        [read] = table.to_pylist()
        assert json.loads(read["metadata"] or "null") == row.get("metadata")
        assert json.loads(read["tool_stats"]) == row["tool_stats"]
    assert all(one.equals(schemas[0]) for one in schemas)


def test_fields_of_another_type_are_kept_beside_the_columns(tmp_path: Path) -> None:
    odd = {"score": "high", "seed": "x", "marks": {"a": 1}, "model": 3, "completed": "yes", "cost_usd": True}
    rows = [plain(1), {**plain(2), **odd, "own": [1]}, {**plain(3), "key": 7}]
    first, second, third = loaded(exported(tmp_path, rows, "hf", "set"), tmp_path / "cache")
    assert whole(first) == rows[0]
    assert second["others"] == {**odd, "own": [1]}
    assert second["messages"] == rows[1]["messages"]
    assert third["key"] == "7"


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x == 0 or abs(x) > 1e-290)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"\\é ', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_every_fraction_comes_back() -> None:
    from pandas.io.json import ujson_loads

    from rl_cli.data.export.loadable_json import loadable_json

    draw = random.Random(4)
    numbers = [draw.uniform(-10, 10) * 10.0 ** draw.randint(-280, 300) for _ in range(1000)]
    numbers += [n / 100 for n in range(1000)]
    texts = list(map(loadable_json, numbers))
    assert [ujson_loads(text) for text in texts] == numbers
    assert [json.loads(text) for text in texts] == numbers


def test_numbers_of_more_than_64_bits_leave_the_row_out(tmp_path: Path) -> None:
    rows = [plain(1), plain(2, metadata={"n": 2**70})]
    source = Source(write_rows(tmp_path / "rows.jsonl", rows), "rows")
    report = export(source, "parquet", tmp_path / "out.parquet", Masker(), None, lambda *_: None)
    assert (report.written, list(report.left_out.values())) == (1, [1])
    assert "64 bits" in next(iter(report.left_out))


@examples(max_examples=25)
@given(
    rows=st.lists(
        st.dictionaries(st.text("abc", min_size=1, max_size=2), _JSON, max_size=3), min_size=1, max_size=4
    )
)
def test_any_metadata_comes_back_from_the_columns(rows: list[dict[str, Any]]) -> None:
    from datasets import Dataset, DatasetInfo, Features

    from rl_cli.data.export.canonical_columns import to_columns
    from rl_cli.data.export.schema import CANONICAL, as_record, as_table

    given_rows = [plain(n, metadata=metadata) for n, metadata in enumerate(rows)]
    table = as_table([as_record(to_columns(row), CANONICAL) for row in given_rows], CANONICAL)
    back = Dataset(table, DatasetInfo(features=Features.from_arrow_schema(table.schema)), fingerprint="x")
    assert [each["metadata"] for each in back] == rows
