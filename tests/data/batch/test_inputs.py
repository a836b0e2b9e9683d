"""Inputs in every form, whole and damaged."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.data.batch.inputs import rows
from rl_cli.data.batch.inputs_arrow import dataset_rows
from rl_cli.data.batch.inputs_text import LONGEST
from tests.data.batch.kit import read_items, write_input
from tests.readme_map import ROOT

ROWS: list[dict[str, Any]] = [
    {"prompt": "one, two\nthree"},
    {"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "\u8bad"}], "n": 2},
    {"prompt": "one, two\nthree", "toolsets": ["terminal", "files"], "metadata": {"deep": {"gold": [1]}}},
    {"prompt": "last", "image": "python:3", "cwd": "/src", "answer": "x"},
]


def as_table(path: Path, delimiter: str) -> Path:
    import csv

    names = ("prompt", "messages", "n", "toolsets", "metadata", "image", "cwd", "answer")
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        table = csv.DictWriter(file, names, delimiter=delimiter)
        table.writeheader()
        for row in ROWS:
            table.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()})
    return path


def as_parquet(path: Path, of: list[dict[str, Any]]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(of), path)
    return path


def test_every_form_of_the_same_rows_gives_the_same_items(tmp_path: Path):
    expected = read_items(write_input(tmp_path / "in.jsonl", ROWS))
    (tmp_path / "in.json").write_text(json.dumps(ROWS, indent=2))
    union = {name for row in ROWS for name in row}
    filled = [{name: row.get(name) for name in union} for row in ROWS]
    shards = tmp_path / "shards"
    shards.mkdir()
    as_parquet(shards / "0.parquet", filled[:2])
    as_parquet(shards / "1.parquet", filled[2:])
    found = [
        read_items(path)
        for path in (
            tmp_path / "in.json",
            as_table(tmp_path / "in.csv", ","),
            as_table(tmp_path / "in.TSV", "\t"),
            as_parquet(tmp_path / "in.parquet", filled),
            shards,
        )
    ]
    for each in found:
        assert [vars(item) | {"where": ""} for item in each] == [vars(i) | {"where": ""} for i in expected]
    assert [item.where for item in found[-1]] == ["row 1", "row 2", "row 3", "row 4"]


def test_a_dataset_is_streamed_as_from_the_hub(tmp_path: Path):
    pytest.importorskip("datasets")
    write_input(tmp_path / "train.jsonl", [{"prompt": "a", "n": None}, {"prompt": "b", "n": 2}])
    found = list(dataset_rows(str(tmp_path), None, "train"))
    assert found == [("row 1", {"prompt": "a"}), ("row 2", {"prompt": "b", "n": 2})]
    with pytest.raises(WorkFailed, match=r"\(split test\): Bad split"):
        list(dataset_rows(str(tmp_path), None, "test"))


def test_a_saved_dataset_is_read_and_a_hub_out_of_reach_is_told(tmp_path: Path):
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_list([{"prompt": "a", "n": None}, {"prompt": "b", "n": 2}])
    made.save_to_disk(str(tmp_path / "plain"))
    datasets.DatasetDict({"train": made}).save_to_disk(str(tmp_path / "split"))
    for name in ("plain", "split"):
        assert [item.samples for item in read_items(tmp_path / name)] == [None, 2]
    with pytest.raises(WorkFailed, match="dataset nobody/nothing cannot be read") as failed:
        read_items("nobody/nothing:test")
    assert "Error" not in str(failed.value)
    assert not logging.getLogger("huggingface_hub.utils._http").isEnabledFor(logging.WARNING)


@settings(max_examples=40)
@given(
    st.lists(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        ),
        max_size=5,
    ),
    st.sampled_from([None, 1]),
)
def test_a_json_list_is_read_as_json_reads_it(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], indent: int | None
):
    file = tmp_path_factory.mktemp("list") / "in.json"
    file.write_text(json.dumps(values, indent=indent))
    assert [value for _, value in rows(str(file))] == values


def test_a_json_list_is_read_across_the_pieces_it_comes_in(tmp_path: Path):
    values = [{"prompt": "x" * size} for size in (1, 8180, 8181, 8192, 100_000)] * 3 + [12345] * 4000
    (tmp_path / "in.json").write_text(json.dumps(values))
    assert [value for _, value in rows(str(tmp_path / "in.json"))] == values


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("in.json", b'[{"prompt": "a"}, {"prompt": ', "damaged in row 2"),
        ("in.json", b'[{"prompt": "a"} {"prompt": "b"}]', "damaged in row 1: a comma is missing"),
        ("in.json", b'[{"prompt": "a"}', "damaged in row 1: the list is not closed"),
        ("in.json", b'{"prompt": "a"}\n{"prompt": "b"}', "no JSON list of rows .lines of JSON belong into"),
        ("in.json", b"[" * 100_000, "damaged in row 1: it is nested too deeply"),
        ("in.json", b'[{"prompt": "\xff"}]', "is not UTF-8 text"),
        ("in.json", b'[{"prompt": "a"}]\n[{"prompt": "b"}]', "the list ends behind row 1, and more follows"),
        ("in.csv", b'prompt\n"open', "damaged before line"),
        ("in.csv", b"prompt,x,prompt\na,b,c\n", "two columns are called prompt"),
        ("in.csv", b"prompt\n\xff\n", "is not UTF-8 text"),
        ("in.parquet", b"PAR1 and no more", "is no whole Parquet file"),
        ("in.txt", b"hello", "its name does not say in which form it is"),
    ],
)
def test_a_damaged_input_is_one_line(tmp_path: Path, name: str, content: bytes, told: str):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(BadUsage, match=told) as error:
        read_items(tmp_path / name)
    assert "\n" not in str(error.value)


def test_an_input_that_is_not_there_is_named(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    for source in ("nothing", str(tmp_path / "no.jsonl"), "a/b.jsonl", "x\0y"):
        with pytest.raises(BadUsage, match=r"does not exist|cannot be read"):
            read_items(source)
    with pytest.raises(BadUsage, match="neither Parquet files nor a saved dataset"):
        read_items(tmp_path / "empty")


def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path):
    with (tmp_path / "in.jsonl").open("wb") as file:
        file.write(b'\xef\xbb\xbf{"prompt": "first"}\r\n\n')
        file.write(b" " * LONGEST + b"\n" + b'{"prompt": "last"}')
    found = list(rows(str(tmp_path / "in.jsonl")))
    assert [where for where, _ in found] == ["line 1", "line 3", "line 4"]
    assert [value for _, value in found[::2]] == [{"prompt": "first"}, {"prompt": "last"}]
    assert "longer than 64 MiB" in found[1][1].why


MEMORY = """
import re, sys
from pathlib import Path
from rl_cli.data.batch.items import items
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
next(items(sys.argv[1], print))
before = peak()
count = sum(1 for item in items(sys.argv[1], print))
print(count, (peak() - before) // 1024)
"""


@pytest.mark.soak
@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "parquet"])
def test_two_hundred_thousand_rows_cost_their_keys(tmp_path: Path, form: str):
    prompts = [{"prompt": f"What is {number} and {'so on ' * 40}?"} for number in range(200_000)]
    file = tmp_path / f"in.{form}"
    if form == "jsonl":
        write_input(file, prompts)
    elif form == "json":
        file.write_text(json.dumps(prompts))
    elif form == "csv":
        file.write_text("prompt\n" + "".join(row["prompt"] + "\n" for row in prompts))
    else:
        as_parquet(file, prompts)
    del prompts
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(file)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    count, mib = map(int, done.stdout.split())
    print(f"{form}: {mib} MiB for {count} rows")
    assert count == 200_000
    assert mib <= 40
