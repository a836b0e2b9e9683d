"""Exported files are there whole or not at all, and nothing is overwritten by accident."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.errors import BadUsage
from rl_cli.data.export.exporting import FORMATS, Format, export
from rl_cli.data.export.source import Source
from rl_cli.data.hygiene.masking import Masker
from tests.data.rows_kit import SEARCH, calling, plain, run_here, varied, write_rows
from tests.e2e.cli import Outcome, command

NAMES: dict[str, str] = {
    "trl": "t.jsonl",
    "sharegpt": "s.jsonl",
    "parquet": "p.parquet",
    "hf": "h",
    "atif": "a",
}
KEY = "sk-test-AAAABBBBCCCCDDDD"


def run_export(rows: Path, target: Path, format_: str, *options: str) -> Outcome:
    return run_here(
        "data", "export", "--input", str(rows), "--format", format_, "--output", str(target), *options
    )


@pytest.mark.train
@pytest.mark.parametrize("format_", FORMATS)
def test_every_format_is_written_once_and_replaced_only_by_force(tmp_path: Path, format_: Format) -> None:
    source = Source(write_rows(tmp_path / "rows.jsonl", varied()), "rows")
    target = tmp_path / "out" / NAMES[format_]
    with pytest.raises(BadUsage, match="does not exist"):
        export(source, format_, target, Masker(), None, print)
    target.parent.mkdir()
    written = []
    for force in (False, True):
        report = export(source, format_, target, Masker(), None, print, force)
        assert (report.read, report.written) == (6, 6)
        assert os.listdir(target.parent) == [target.name]
        files = [path for path in sorted([target, *target.rglob("*")]) if path.is_file()]
        written.append([(path, path.read_bytes()) for path in files])
    assert written[0] == written[1]
    with pytest.raises(BadUsage, match="--force"):
        export(source, format_, target, Masker(), None, print)


def test_a_folder_that_is_no_export_is_never_replaced(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plain(1)])
    (precious := tmp_path / "home").mkdir()
    (precious / "thesis.tex").write_text("years of work")
    done = run_export(rows, precious, "atif", "--force")
    assert (done.code, "is no export" in done.err) == (2, True)
    assert (precious / "thesis.tex").read_text() == "years of work"
    onto_itself = run_export(rows, rows, "trl")
    assert (onto_itself.code, "exists already" in onto_itself.err) == (2, True)


def test_force_replaces_files_and_links_but_no_device(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plain(1)])
    os.mkfifo(pipe := tmp_path / "pipe.jsonl")
    done = run_export(rows, pipe, "trl", "--force")
    assert (done.code, "is no file" in done.err, pipe.is_fifo()) == (2, True, True)
    (real := tmp_path / "real").mkdir()
    (real / "export.json").write_text("{}")
    (link := tmp_path / "link").symlink_to(real)
    assert run_export(rows, link, "atif", "--force").code == 0
    assert (link.is_symlink(), os.listdir(real)) == (False, ["export.json"])
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe.jsonl", "real", "rows.jsonl"]


@pytest.mark.parametrize("name", ["~nobody-here/x", "x" * 3000, "..", ""], ids=range(4))
def test_a_source_that_is_none_is_one_line(tmp_path: Path, home: Path, name: str) -> None:
    (home / "batches").mkdir(parents=True)
    write_rows(home / "trajectories.jsonl", [plain(1)])
    done = run_here("data", "export", "-i", name, "--format", "trl", "-o", str(tmp_path / "out.jsonl"))
    assert (done.code in (1, 2), done.err.count("\n"), "bug" in done.err) == (True, 1, False)


def test_bad_lines_are_told_with_their_numbers_and_the_rest_is_exported(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    bad = [
        "{",
        "[1]",
        '{"messages": []}',
        '{"messages": [{"role": "user", "content": "a"}], "metadata": {"x": NaN}}',
        f'{{"messages": [{{"role": "user", "content": "a"}}], "metadata": {"[" * 200 + "]" * 200}}}',
        "[" * 100_000,
    ]
    path.write_text("\n".join([json.dumps(plain(1)), *bad, "", json.dumps(plain(2)), '{"torn": ']))
    done = run_export(path, tmp_path / "out.jsonl", "trl", "--json")
    assert done.code == 1
    assert [line.partition(":")[0] for line in done.err.splitlines()] == [
        *(f"line {n}" for n in (2, 3, 4, 5, 6, 7, 10)),
        "error",
    ]
    [report] = done.rows()
    assert (report["read"], report["written"], report["bad_lines"]) == (2, 2, 7)
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 2


def test_nothing_to_export_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("nope\n")
    done = run_export(path, tmp_path / "out", "atif")
    assert (done.code, "no row to export" in done.err) == (2, True)
    assert os.listdir(tmp_path) == ["rows.jsonl"]


@pytest.mark.parametrize(
    ("format_", "name"), [("hf", "x.jsonl"), ("atif", "x.parquet"), ("parquet", "x.jsonl")]
)
def test_a_name_that_does_not_fit_the_format_is_refused(tmp_path: Path, format_: str, name: str) -> None:
    done = run_export(write_rows(tmp_path / "r", [plain(1)]), tmp_path / name, format_)
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.train
@pytest.mark.parametrize("format_", ["trl", "hf"])
def test_a_full_disk_is_one_line_and_leaves_what_was_there(tmp_path: Path, format_: str) -> None:
    target = tmp_path / NAMES[format_]
    small = write_rows(tmp_path / "small.jsonl", [plain(1)])
    assert run_export(small, target, format_).code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    noise = [plain(n, metadata={"x": os.urandom(3000).hex()}) for n in range(100)]
    large = write_rows(
        tmp_path / "large.jsonl", noise if format_ == "hf" else [plain(n) for n in range(2000)]
    )
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        done = run_export(large, target, format_, "--force")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (done.code, done.err.count("\n"), "File too large" in done.err) == (1, 1, True)
    large.unlink()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_kill_leaves_no_file_of_that_name(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "rows.jsonl", [plain(n) for n in range(8000)])
    process = subprocess.Popen(
        command(
            "data", "export", "--input", str(path), "--format", "trl", "--output", str(tmp_path / "out.jsonl")
        )
    )
    while not list(tmp_path.glob(".out.jsonl.*.tmp")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out.jsonl").exists()


def test_secrets_and_personal_data_are_masked_and_counted(tmp_path: Path) -> None:
    text = f"key {KEY}, mail ann@example.org"
    rows = write_rows(tmp_path / "rows.jsonl", [calling(1, SEARCH, json.dumps({"q": text}), text)])
    done = run_export(rows, tmp_path / "a.jsonl", "trl", "--pii", "email", "--json")
    assert done.rows()[0]["masked"] == {"secret": 2, "email": 2}
    written = (tmp_path / "a.jsonl").read_text()
    assert KEY not in written
    assert "ann@" not in written
    assert run_export(rows, tmp_path / "b.jsonl", "trl", "--no-redact").code == 0
    assert (tmp_path / "b.jsonl").read_text().count(KEY) == 2


def test_duplicates_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "rows.jsonl", [plain(1), plain(2), {**plain(1), "key": "other"}])
    done = run_export(rows, tmp_path / "a.jsonl", "sharegpt", "--dedupe", "exact", "--json")
    [report] = done.rows()
    assert (report["read"], report["written"], report["duplicates"]) == (3, 2, {"exact": 1})


def test_the_sharegpt_form_comes_back(tmp_path: Path) -> None:
    rows = varied()
    first, second = (tmp_path / name for name in ("a.jsonl", "b.jsonl"))
    assert run_export(write_rows(first, rows), second, "sharegpt").code == 0
    made = [json.loads(line) for line in second.read_text().splitlines()]
    assert all(turn.keys() == {"from", "value"} for each in made for turn in each["conversations"])
    source = Source(second, "b")
    assert [each["messages"] for each in source.rows(print)] == [each["messages"] for each in rows]


MEASURE = """
import resource, sys
from pathlib import Path
from rl_cli.data.export.exporting import export
from rl_cli.data.export.source import Source
from rl_cli.data.hygiene.masking import Masker
folder = Path(sys.argv[1])
for name in ("trl.jsonl", "parquet.parquet"):
    for rows in ("few", "many"):
        target = folder / f"{rows}-{name}"
        export(Source(folder / rows, rows), name.split(".")[0], target, Masker(False), None, print)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.train
@pytest.mark.parametrize("count", [400, pytest.param(12_000, marks=pytest.mark.soak)])
def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path, count: int) -> None:
    for name, number in (("few", 130), ("many", count)):
        with (tmp_path / name).open("w") as file:
            for n in range(number):
                file.write(json.dumps(plain(n, metadata={"text": f"{n % 10}" * 80_000})) + "\n")
    done = subprocess.run(
        [sys.executable, "-P", "-c", MEASURE, str(tmp_path)], capture_output=True, check=True, timeout=600
    )
    few_lines, many_lines, few_columns, many_columns = map(int, done.stdout.split())
    growth = (many_lines - few_lines, many_columns - few_columns)
    assert max(growth) < 30_000, growth  # KB; the rows are 32 MB, or 1 GB


def test_atif_follows_the_format(tmp_path: Path) -> None:
    target = tmp_path / "set"
    rows = [*varied(), calling(7, SEARCH, "not JSON", "no such city")]
    assert run_export(write_rows(tmp_path / "rows.jsonl", rows), target, "atif").code == 0
    made: list[dict[str, Any]] = []
    for each in rows:
        made.append(json.loads((target / f"{each['key']}.json").read_text()))
        assert made[-1]["schema_version"] == "ATIF-v1.7"
        assert made[-1]["trajectory_id"] == each["key"]
        assert [step["step_id"] for step in made[-1]["steps"]] == list(range(1, len(made[-1]["steps"]) + 1))
        for step in made[-1]["steps"]:
            calls = {call["tool_call_id"] for call in step.get("tool_calls", [])}
            results = step.get("observation", {}).get("results", [])
            assert {result["source_call_id"] for result in results} == calls
            assert step["source"] == "agent" or not step.keys() & {"tool_calls", "reasoning_content"}
    step = made[2]["steps"][2]
    assert step["tool_calls"][0]["arguments"] == {"city": "Oslo"}
    assert step["reasoning_content"] == "Let me look."
    assert made[-1]["steps"][2]["tool_calls"][0]["extra"] == {"invalid_arguments": "not JSON"}
    assert made[0]["final_metrics"]["total_cost_usd"] == 0.25
    lines = tmp_path / "set.jsonl"
    assert run_export(tmp_path / "rows.jsonl", lines, "atif").code == 0
    assert [json.loads(line) for line in lines.read_text().splitlines()] == made


def test_atif_keeps_every_row_whatever_its_key(tmp_path: Path) -> None:
    keys = ["export", "Export", "a", "a", "a.2", "../../x", ".", "", None, 5, [1], "k" * 5000, "\x00é"]
    rows = [
        {**plain(n), "key": key, "model": 3, "usage": {"input_tokens": "x"}} for n, key in enumerate(keys)
    ]
    target = tmp_path / "set"
    assert run_export(write_rows(tmp_path / "rows.jsonl", rows), target, "atif").code == 0
    made = [json.loads(path.read_text()) for path in target.iterdir() if path.name != "export.json"]
    assert sorted(each["steps"][0]["message"] for each in made) == sorted(
        each["messages"][0]["content"] for each in rows
    )
    assert len({path.name.lower() for path in target.iterdir()}) == len(keys) + 1
    assert not [each for each in made if "model_name" in each["agent"] or not each["trajectory_id"]]
