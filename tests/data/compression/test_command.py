"""`rl-cli data compress`: inputs by name, what it prints, exit codes."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path

import pytest

from rl_cli.cli import main
from tests.data.compression.kit import read_rows, turns_row, write_rows
from tests.e2e.cli import Outcome


def run(*words: str) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.run(["data", "compress", *words])
    return Outcome(code, out.getvalue(), err.getvalue())


def test_a_batch_is_taken_by_its_name(home: Path, tmp_path: Path) -> None:
    rows = [turns_row(random.Random(n), [900] * n, f"{n}") for n in range(1, 9)]
    output = str(tmp_path / "out.jsonl")
    same = ("--output", output, "--tokenizer", "estimate")
    missing = run("--input", "mine", *same)
    assert (missing.code, "no file and no batch mine" in missing.err) == (2, True)
    batch = home / "batches" / "mine"
    batch.mkdir(parents=True)
    unmerged = run("--input", "mine", *same)
    assert (unmerged.code, "rl-cli data merge mine" in unmerged.err) == (2, True)
    write_rows(batch / "trajectories.jsonl", rows)
    done = run("--input", "mine", *same, "--max-tokens", "1500")
    assert done.code == 0, done.err
    assert [row["key"] for row in read_rows(Path(output))] == [row["key"] for row in rows]


def test_estimates_are_called_so(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "in.jsonl", [turns_row(random.Random(1), [900] * 9)])
    said = run("--input", str(rows), "--tokenizer", "estimate", "--dry-run")
    assert said.code == 0
    assert "tokens are estimates" in said.err
    report = json.loads(run("--input", str(rows), "--tokenizer", "estimate", "--dry-run", "--json").out)
    assert (report["rows"], report["estimated"]) == (1, True)


def test_lines_that_are_no_rows_make_it_incomplete(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"conversations": [{"from": "human", "value": "hi"}]}\nnothing\n')
    done = run(
        "--input",
        str(tmp_path / "in.jsonl"),
        "--output",
        str(tmp_path / "out.jsonl"),
        "--tokenizer",
        "estimate",
    )
    assert done.code == 1
    assert "1 rows are no JSON objects" in done.err
    assert len(read_rows(tmp_path / "out.jsonl")) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--tokenizer", "estimate"), "--output"),
        (("--output", "x.jsonl"), "--tokenizer"),
        (
            ("--output", "x.jsonl", "--tokenizer", "estimate", "--base-url", "http://localhost:1"),
            "no address",
        ),
        (("--output", "x.jsonl", "--tokenizer", "estimate", "--summarizer", "nobody/x"), "unknown model"),
        (("--output", "x.jsonl", "--tokenizer", "estimate", "--max-tokens", "5"), "at least 200"),
        (("--output", "x.jsonl", "--tokenizer", "estimate", "--over-limit", "drop"), "over-limit"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    rows = write_rows(tmp_path / "in.jsonl", [turns_row(random.Random(1), [300])])
    done = run("--input", str(rows), *words)
    assert done.code == 2
    assert why in done.err
    assert not Path("x.jsonl").exists()
