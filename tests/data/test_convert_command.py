"""`rl-cli data convert` as a user runs it: every case, both ways, and lines that are no JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.components import cases
from tests.data.conversation_judge import expand, faults
from tests.e2e.cli import Outcome, command, piped

ROWS = [json.loads(line) for line in (cases() / "trajectories.jsonl").read_text("utf-8").splitlines()]
MUST = [row for row in ROWS if row["strictness"] != "should"]


def convert(lines: str | bytes, *options: str) -> Outcome:
    given = lines.encode() if isinstance(lines, str) else lines
    return piped(given, "data", "convert", "--jsonl", *options)


def line_of(row: dict[str, Any]) -> str:
    return json.dumps({"id": row["id"], "tools": row["tools"], "messages": expand(row["messages"])}) + "\n"


@pytest.fixture(scope="module")
def converted() -> dict[str, dict[str, Any]]:
    done = convert("".join(map(line_of, ROWS)))
    assert (done.code, done.err.count("\n")) == (0, 1)
    assert [row["id"] for row in done.rows()] == [row["id"] for row in ROWS]
    return {row["id"]: row for row in done.rows()}


@pytest.mark.parametrize("row", MUST, ids=lambda row: row["id"])
def test_cases(row: dict[str, Any], converted: dict[str, dict[str, Any]]) -> None:
    output = converted[row["id"]]
    assert list(faults(row, output)) == []
    if twin := row["expect"].get("same_as"):
        assert output["conversations"] == converted[twin]["conversations"]


def test_the_way_back_and_forth_gives_the_same_lines(converted: dict[str, dict[str, Any]]) -> None:
    whole = [row for row in converted.values() if "rejected" not in row]
    back = convert("".join(json.dumps(row) + "\n" for row in whole), "--reverse")
    assert back.code == 0, back.err
    again = convert(back.out)
    seen = [(row["id"], row["conversations"], row["tool_stats"]) for row in again.rows()]
    assert seen == [(row["id"], row["conversations"], row["tool_stats"]) for row in whole]


def test_a_bad_line_is_named_and_the_others_are_converted() -> None:
    good = json.dumps({"id": 1, "messages": [{"role": "user", "content": "hi"}]}).encode()
    bad = [b"{", b"[1]", b"\xff", b"[" * 100_000, b'{"n": ' + b"1" * 5000 + b"}"]
    done = convert(good + b"\r\n\n" + b"\n".join(bad) + b"\n" + good)
    assert [row["id"] for row in done.rows()] == [1, 1]
    assert done.code == 1
    assert [line.partition(":")[0] for line in done.err.splitlines()] == [
        *(f"line {n}" for n in range(3, 8)),
        "2 converted, 0 rejected",
        "error",
    ]


def test_what_cannot_be_converted_says_why() -> None:
    result = {"role": "tool", "tool_call_id": "b2", "content": "noon"}
    called = {"role": "assistant", "tool_calls": [{"id": "a1", "function": {"name": "search"}}]}
    rows = [[], "hi", [1], [{"role": "narrator"}], [result], [called, result], [{**called, "tool_calls": 3}]]
    done = convert(
        "".join(json.dumps({"id": n, "messages": messages}) + "\n" for n, messages in enumerate(rows))
    )
    assert (done.code, done.err) == (0, "0 converted, 7 rejected\n")
    back = convert(done.out, "--reverse")
    assert (back.code, back.rows()) == (0, done.rows())
    assert [row["rejected"] for row in done.rows()] == [
        "no messages",
        "no messages",
        "a message is no object",
        "unknown role 'narrator'",
        "a result for the call 'b2', which was not made before",
        "a result for the call 'b2', which was not made before",
        "tool_calls is no list",
    ]


def test_other_fields_of_a_line_are_kept_both_ways() -> None:
    others = {"reward": 0.5, "source": {"run": "a"}, "from": "x"}
    good = {"id": 1, "tools": [], "messages": [{"role": "user", "content": "hi"}], **others}
    done = convert(json.dumps(good) + "\n" + json.dumps({"id": 2, "messages": 3, **others}))
    assert [{**row, **others} for row in done.rows()] == done.rows()
    assert done.err == "1 converted, 1 rejected\n"
    back = convert(done.out, "--reverse")
    assert back.rows()[0] == good
    assert back.rows()[1] == {
        "id": 2,
        "rejected": "no messages",
        **others,
    }


def test_a_field_with_the_name_of_one_of_ours_is_named() -> None:
    messages = [{"role": "user", "content": "hi"}]
    keys = ["conversations", "tool_stats", "reasoning", "completed", "marks", "rejected"]
    done = convert("".join(json.dumps({"messages": messages, key: 1}) + "\n" for key in keys))
    assert done.err == "0 converted, 6 rejected\n"
    for key, row in zip(keys, done.rows(), strict=True):
        assert repr(key) in row["rejected"]
    turns = [{"from": "human", "value": "hi"}]
    (row,) = convert(json.dumps({"conversations": turns, "tools": []}), "--reverse").rows()
    assert "'tools'" in row["rejected"]


def test_without_jsonl_it_says_what_to_do() -> None:
    done = subprocess.run(command("data", "convert"), input="", capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--jsonl" in done.stderr


def test_memory_does_not_grow_with_the_number_of_lines(tmp_path: Path) -> None:
    row = {"messages": [{"role": "user", "content": "x" * 50_000}, {"role": "assistant", "content": "y"}]}
    peaks = []
    for count in (20, 600):
        lines = tmp_path / f"{count}.jsonl"
        lines.write_text((json.dumps(row) + "\n") * count)
        shell = f"'{command()[0]}' data convert --jsonl < '{lines}' > '{tmp_path}/out'; exit $?"
        done = subprocess.run(
            ["python3", "-c", PEAK, shell], capture_output=True, text=True, timeout=120, check=True
        )
        peaks.append(int(done.stdout))
    assert peaks[1] < peaks[0] + 10_000, peaks  # KB; the lines are 30 MB


PEAK = """
import resource, subprocess, sys
subprocess.run(["sh", "-c", sys.argv[1]], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_a_system_message_that_stands_nowhere_is_rejected_and_the_rest_goes_on() -> None:
    turns = [{"from": "human", "value": "x"}, {"from": "gpt", "value": "<think>\n</think>\ny"}]
    placed = [[{"at": at, "content": "s"}] for at in (10**30, -5, 0)]
    rows = [{"id": 1, "conversations": turns, "system_messages": said} for said in placed]
    done = convert("".join(json.dumps(row) + "\n" for row in rows), "--reverse")
    assert ["rejected" in row for row in done.rows()] == [True, True, False]
