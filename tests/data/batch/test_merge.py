"""Merging: every sample ends in one file, whatever the filters, the order, and what is damaged."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rl_cli.cli.main import run
from rl_cli.data.batch.entries import Entry
from rl_cli.data.batch.filters import DROPPABLE, Filters
from rl_cli.data.batch.folder import BatchFolder
from rl_cli.data.batch.merge import merge
from rl_cli.data.batch.summary import summary
from tests.components import mounts
from tests.data.batch.kit import append, begun, done, failed, lines, read_items, write_input
from tests.readme_map import ROOT

PROMPTS = [f"question {number}" for number in range(10)]


def batch(tmp_path: Path, prompts: list[Any] = PROMPTS, **flags: Any) -> tuple[BatchFolder, list[str]]:
    """A batch, and the keys of its items."""
    folder, config = begun(write_input(tmp_path / "in.jsonl", prompts), **flags)
    return folder, [item.key for item in read_items(config.input)]


def keys(path: Path) -> list[str]:
    return [row["key"] for row in lines(path)]


OUTCOMES = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.integers(0, 2),
        st.sampled_from(["done", "failed", "open"]),
        st.sets(st.sampled_from(DROPPABLE)),
        st.none() | st.floats(0, 1),
    ),
    max_size=20,
)
SETTINGS: list[dict[str, Any]] = [
    {"samples": 3},
    {"best_of": 3, "score": "judge"},
    {"target": 1, "max_samples_per_prompt": 3, "min_score": 0.5, "score": "judge"},
]


@settings(max_examples=30)
@given(
    OUTCOMES,
    st.sampled_from(SETTINGS),
    st.builds(Filters, st.frozensets(st.sampled_from(DROPPABLE)), st.none() | st.floats(0, 1)),
    st.randoms(),
)
def test_the_parts_are_all_keys_and_the_order_of_the_ledger_means_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    outcomes: list[Any],
    sampled: dict[str, Any],
    filters: Filters,
    chance: Any,
):
    tmp_path = tmp_path_factory.mktemp("parts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RL_CLI_HOME", str(tmp_path / "home"))
        folder, items = batch(tmp_path, PROMPTS[:5], **sampled)
        entries: dict[str, Entry] = {}
        left_open: list[Entry] = []
        for item, sample, state, marks, score in outcomes:
            key = f"{items[item]}-{sample}"
            scored = {} if score is None else {"score": score}
            paid = done(key, marks=sorted(marks), **scored)
            if state == "open":
                left_open.append({**paid, "state": "open", "reason": "budget"})
            else:
                entries[key] = paid if state == "done" else failed(key)
        append(folder, [*left_open, *entries.values()])
        found = merge(folder, filters)
        files = (folder.trajectories, folder.discarded, folder.failures)
        parts = list(chain.from_iterable(map(keys, files)))
        assert sorted(parts) == sorted(entries)
        assert found["merged"] + sum(found["discarded"].values()) == found["done"]
        assert found["done"] + sum(found["failed"].values()) == len(entries)
        assert found["open"] == len(left_open)
        assert found["requests"] == 2 * (found["done"] + found["open"])
        if "target" not in sampled:
            assert found["pending"] + len(entries) == found["expected"] == 15
        assert all(row["discarded"] for row in lines(folder.discarded))
        before = [sorted(map(json.dumps, lines(file))) for file in files]
        content = folder.ledger.read_bytes().splitlines(keepends=True)
        chance.shuffle(content)
        folder.ledger.write_bytes(b"".join(content))
        assert merge(folder, filters) == found
        assert [sorted(map(json.dumps, lines(file))) for file in files] == before
        assert summary(folder).items() >= {k: v for k, v in found.items() if k != "name"}.items()


def test_filters_move_rows_to_and_fro_and_nothing_is_lost(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path)
    marks = [["invented_tool"], ["no_reasoning"], ["empty_answer", "no_reasoning"], ["incomplete"], []]
    append(folder, [done(f"{items[at]}-0", marks=marks[at], score=at / 10) for at in range(5)])
    found = merge(folder, Filters())
    assert (found["merged"], found["discarded"]) == (4, {"invented_tool": 1})
    assert found["marks"] == {"empty_answer": 1, "incomplete": 1, "invented_tool": 1, "no_reasoning": 2}
    strict = merge(folder, Filters(frozenset(DROPPABLE), 0.2))
    assert strict["discarded"] == {
        "empty_answer": 1,
        "incomplete": 1,
        "invented_tool": 1,
        "no_reasoning": 1,
    }
    scored = merge(folder, Filters(frozenset(), 0.2))
    assert (scored["merged"], scored["discarded"]) == (3, {"low_score": 2})
    assert [row["discarded"] for row in lines(folder.discarded)] == ["low_score"] * 2
    assert merge(folder, Filters(frozenset(), None))["merged"] == 5
    assert folder.discarded.read_bytes() == b""
    assert json.loads(folder.statistics.read_text())["merged"] == 5


def test_best_of_keeps_the_best_that_the_filters_leave(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path, ["a", "b"], best_of=3, score="judge")
    a, b = items
    append(folder, [done(f"{a}-0", score=0.9, marks=["invented_tool"])])
    append(folder, [done(f"{a}-1", score=0.2), done(f"{a}-2", score=0.7)])
    append(folder, [done(f"{b}-2", score=0.5), done(f"{b}-1", score=0.5), failed(f"{b}-0")])
    found = merge(folder, Filters())
    assert sorted(keys(folder.trajectories)) == sorted([f"{a}-2", f"{b}-1"])
    assert found["discarded"] == {"invented_tool": 1, "not_best": 2}
    assert found["failed"] == {"deadline": 1}


def test_a_target_keeps_the_first_that_reach_it(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path, ["a", "b"], target=2, min_score=0.5, score="judge")
    a, b = items
    append(folder, [done(f"{a}-{sample}", score=sample / 4) for sample in (4, 3, 2, 1, 0)])
    append(folder, [done(f"{b}-0", score=1.0), done(f"{b}-1")])
    found = merge(folder, Filters(min_score=0.5))
    assert sorted(keys(folder.trajectories)) == sorted([f"{a}-2", f"{a}-3", f"{b}-0"])
    assert found["discarded"] == {"beyond_target": 1, "low_score": 2, "no_score": 1}
    assert (found["pending"], found["missing"][0]["key"]) == (1, f"{b}-2")


def test_bat_04_statistics_of_an_interrupted_batch_are_those_of_another(tmp_path: Path, home: Path):
    folders = []
    for name in ("whole", "interrupted"):
        folder, items = batch(tmp_path, name=name)
        entries = [done(f"{key}-0", score=0.1 * at, cost_usd=0.1 + at / 7) for at, key in enumerate(items)]
        if name == "interrupted":
            random.Random(1).shuffle(entries)
            append(folder, entries[:3])
            with folder.ledger.open("ab") as file:
                file.write(b'{"key": "torn')
            append(folder, entries[3:])
        else:
            append(folder, entries)
        merge(folder, Filters())
        folders.append(json.loads(folder.statistics.read_text()) | {"name": ""})
    assert folders[0] == folders[1]
    assert (folders[0]["requests"], folders[0]["tokens"]) == (20, {"input": 100, "output": 30, "cached": 10})


def test_bat_13_lines_that_are_gone_are_counted_and_named(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
):
    folder, items = batch(tmp_path)
    append(folder, [done(f"{key}-0") for key in items])
    content = folder.ledger.read_bytes().splitlines(keepends=True)
    folder.ledger.write_bytes(b"".join(line for at, line in enumerate(content) if at not in (2, 5, 9)))
    assert run(["data", "merge", "batch", "--json"]) == 1
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert (found["expected"], found["done"], found["merged"], found["pending"]) == (10, 7, 7, 3)
    assert [lacking["prompt"] for lacking in found["missing"]] == ["question 2", "question 5", "question 9"]
    assert [lacking["where"] for lacking in found["missing"]] == ["line 3", "line 6", "line 10"]
    assert "error: 3 samples are missing (ask them: rl-cli data resume batch)" in told.err


def test_bat_16_what_failed_stands_in_one_file_with_its_reason(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path, PROMPTS[:4])
    paid = done(f"{items[1]}-0")["row"]
    append(
        folder,
        [done(f"{items[0]}-0"), failed(f"{items[2]}-0"), done(f"{items[3]}-0", marks=["invented_tool"])],
    )
    append(folder, [{**failed(f"{items[1]}-0", "content_filter"), "row": paid}])
    found = merge(folder, Filters())
    assert found["failed"] == {"content_filter": 1, "deadline": 1}
    assert found["requests"] == 6, "what a failed one used is paid for"
    files = (folder.trajectories, folder.discarded, folder.failures)
    assert sorted(chain.from_iterable(map(keys, files))) == sorted(f"{key}-0" for key in items)
    assert all(row["reason"] and row["attempts"] and row["error"] for row in lines(folder.failures))


def test_dst_03_statistics_list_every_tool_with_zeros(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path, PROMPTS[:2])
    stats = {"terminal": {"count": 2, "success": 1, "failure": 1}}
    tools = [{"type": "function", "function": {"name": name}} for name in ("terminal", "read_file")]
    append(folder, [done(f"{items[0]}-0", tool_stats=stats, tools=tools), done(f"{items[1]}-0")])
    none = {"count": 0, "success": 0, "failure": 0}
    assert merge(folder, Filters())["tool_stats"] == {"read_file": none, **stats}


def test_rows_of_items_that_the_input_has_no_more_are_kept_and_told(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path)
    append(folder, [done(f"{key}-0") for key in items])
    write_input(tmp_path / "in.jsonl", [*PROMPTS[1:], "new", {}])
    found = merge(folder, Filters())
    assert (found["merged"], found["not_in_input"], found["bad_rows"], found["pending"]) == (10, 1, 1, 1)
    (tmp_path / "in.jsonl").unlink()
    found = merge(folder, Filters())
    assert (found["merged"], found["items"], found["pending"]) == (10, None, None)
    assert "in.jsonl does not exist" in found["problem"]


KILLED = """
from rl_cli.data.batch.filters import Filters
from rl_cli.data.batch.folder import find_batch
from rl_cli.data.batch.merge import merge
print("begun", flush=True)
while True:
    merge(find_batch("batch"), Filters())
"""


def test_a_killed_merge_leaves_whole_files_and_the_next_one_clears_up(tmp_path: Path, home: Path):
    folder, items = batch(tmp_path)
    append(folder, [done(f"{key}-0", text="x" * 100_000) for key in items])
    merge(folder, Filters())
    chance = random.Random(3)
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", KILLED], cwd=ROOT, stdout=subprocess.PIPE) as merging:
            assert merging.stdout
            merging.stdout.readline()
            time.sleep(chance.random() * 0.1)
            merging.send_signal(signal.SIGKILL)
        assert len(keys(folder.trajectories)) == 10
        assert json.loads(folder.statistics.read_text())["merged"] == 10
    merge(folder, Filters())
    assert list(folder.path.glob(".*.tmp")) == []


FULL = """
import os, sys
from pathlib import Path
home = Path(sys.argv[1])
os.environ["RL_CLI_HOME"] = str(home)
from rl_cli.cli.main import run
from tests.data.batch.kit import append, begun, done, read_items, write_input
folder, config = begun(write_input(home / "in.jsonl", ["a", "b", "c"]))
keys = [item.key + "-0" for item in read_items(config.input)]
append(folder, [done(keys[0])])
print(run(["data", "merge", "batch", "--json"]))
append(folder, [done(key, text="x" * 200_000) for key in keys[1:]])
(home / "fill").write_bytes(bytes(300_000))
before = {path: path.read_bytes() for path in folder.path.iterdir()}
print(run(["data", "merge", "batch"]))
print({path: path.read_bytes() for path in folder.path.iterdir()} == before)
(home / "fill").unlink()
print(run(["data", "merge", "batch"]))
"""


def test_a_merge_on_a_full_disk_leaves_the_files_of_the_last_one(tmp_path: Path):
    mounts()
    small = tmp_path / "small"
    small.mkdir()
    shell = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, FULL]
    ended = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert [line for line in ended.stdout.splitlines() if len(line) < 6] == ["1", "1", "True", "0"], (
        ended.stderr
    )
    full = f"the disk is full: cannot write {small}/batches/batch"
    assert ended.stderr.splitlines()[-1] == f"error: {full} (free some space and try again)"
