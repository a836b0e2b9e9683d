"""`rl-cli data merge` and `stats`: what a person reads, and at which exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_cli.cli.main import run
from rl_cli.core.processes import ProcessIdentity
from tests.data.batch.kit import append, begun, done, failed, read_items, write_input


def test_a_whole_batch(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]):
    folder, config = begun(write_input(tmp_path / "in.jsonl", ["a", "b", "c"]), min_score=0.5, score="judge")
    keys = [f"{item.key}-0" for item in read_items(config.input)]
    calls = {"terminal": {"count": 3, "success": 2, "failure": 1}}
    append(folder, [done(keys[0], score=1.0, tool_stats=calls), done(keys[1], score=0.25), failed(keys[2])])
    assert run(["data", "merge", "batch"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    shown = dict(line.split(maxsplit=1) for line in told.out.splitlines())
    assert shown["merged"] == "1"
    assert shown["discarded"] == "1 low_score"
    assert shown["failed"] == "1 deadline"
    assert shown["cost"] == "$0.2000"
    assert shown["terminal"].split() == ["3", "2", "1"]
    assert shown["folder"] == str(folder.path)
    assert run(["data", "merge", "batch", "--min-score", "0"]) == 0
    assert run(["data", "stats", "batch"]) == 0
    assert "merged     2\n" in capsys.readouterr().out


def test_a_batch_that_is_made_and_one_that_was_killed(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
):
    folder, _ = begun(write_input(tmp_path / "in.jsonl", ["a", "b", {}]))
    state = {"state": "running", "process": ProcessIdentity.current().to_dict(), "in_flight": 2}
    folder.write_state(state)
    assert run(["data", "stats", "batch"]) == 0
    told = capsys.readouterr()
    assert "state      running" in told.out
    assert told.err == "warning: 1 rows of the input cannot be used\n"
    folder.write_state(state | {"process": ProcessIdentity.current().to_dict() | {"started": 1.0}})
    assert run(["data", "stats", "batch"]) == 0
    assert "stopped" in capsys.readouterr().out


def test_batches_are_listed_newest_first(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["data", "list", "--json"]) == 0
    assert "rl-cli data generate --input FILE --name NAME makes one" in capsys.readouterr().err
    input_ = write_input(tmp_path / "in.jsonl", ["a", "b"])
    here = ProcessIdentity.current().to_dict()
    counted = {"expected": 2, "done": 1, "failed": 1, "spend": 0.25, "ended": None}
    ends = {
        "old": {"state": "finished", "process": here, "ended": 12.0},
        "killed": {"state": "running", "process": here | {"started": 1.0}},
        "made": {"state": "running", "process": here},
    }
    for started, (name, state) in enumerate(ends.items(), 10):
        folder, _ = begun(input_, name=name)
        folder.write_state({**counted, "started": started, **state})
    assert run(["data", "list", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["name"], row["state"]) for row in listed] == [
        ("made", "running"),
        ("killed", "stopped"),
        ("old", "finished"),
    ]
    assert "its process is gone" in listed[1]["reason"]
    assert (listed[2]["done"], listed[2]["expected"], listed[2]["failed"]) == (1, 2, 1)
    assert (listed[2]["cost_usd"], listed[2]["ended"]) == (0.25, "1970-01-01T00:00:12.000Z")
    assert run(["data", "list"]) == 0
    assert capsys.readouterr().out.splitlines()[3].split()[:5] == ["old", "finished", "1/2", "1", "$0.2500"]


def test_a_folder_of_which_little_is_left(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]):
    folder, config = begun(write_input(tmp_path / "in.jsonl", ["a"]))
    append(folder, [done(f"{read_items(config.input)[0].key}-0")])
    for name in ("batch.yaml", "state.json", "statistics.json"):
        (folder.path / name).write_bytes(b"\x00{")
    with folder.ledger.open("ab") as file:
        file.write(b"torn\ntorn")
    assert run(["data", "stats", "batch"]) == 0
    told = capsys.readouterr()
    assert "done       1\n" in told.out
    assert "1 damaged lines of the ledger were passed over" in told.err
    assert "4 bytes of an unfinished line" in told.err
    assert "what is missing cannot be told" in told.err
    assert run(["data", "merge", "batch"]) == 2


def test_names_that_are_none(home: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    begun(write_input(tmp_path / "in.jsonl", ["a"]))
    assert run(["data", "stats", "bach"]) == 2
    assert "there is no batch bach (did you mean batch?)" in capsys.readouterr().err
    for name in ("../x", "", ".", "/abs", "a/b", "CON", "nul.txt", "x" * 101, "a\0b", "-x"):
        assert run(["data", "merge", "--", name]) == 2
        assert "that is no name of a batch" in capsys.readouterr().err
