"""`rl-cli grade` as people and programs run it."""

from __future__ import annotations

import json
import subprocess
import sys

from rl_cli.core.extras import missing_modules


def grade(*arguments: str, text: str = "") -> subprocess.CompletedProcess[str]:
    code = "from rl_cli.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-P", "-c", code, "grade", *arguments], input=text, capture_output=True, text=True
    )


def test_one_answer() -> None:
    done = grade("--gold", "18", text="Therefore the total is \\boxed{18}.\n")
    row = json.loads(done.stdout)
    assert done.returncode == 0
    assert row.pop("seconds") < 5
    assert row == {"correct": True, "extracted": "18", "reason": "equal", "format_ok": False}
    boxed = grade("--gold", "18", "--mark", "boxed", text="Therefore the total is \\boxed{18}.\n")
    assert json.loads(boxed.stdout)["format_ok"]


def test_grd_08_lines_and_their_summary() -> None:
    rows = [
        {"id": "a", "gold": "Half of 36.\n#### 18", "answer": "#### 18"},
        {"id": "b", "gold": 18, "answer": "The answer is \\boxed{18}."},
        {"id": "c", "gold": "18", "answer": "#### 20"},
        {"id": "d", "gold": "18", "answer": "No idea \ud800."},
        {"id": "e", "gold": "(see picture)", "answer": "18"},
    ]
    done = grade("--jsonl", text="".join(json.dumps(row) + "\n" for row in rows))
    printed = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1  # for the gold that is none
    assert [row["id"] for row in printed] == list("abcde")
    assert [row["correct"] for row in printed] == [True, True, False, False, False]
    assert [row["format_ok"] for row in printed] == [True, False, True, False, False]
    assert printed[3]["extracted"] is None
    assert "4 graded: 2 correct, 2 well formed, 1 without an answer; 1 unusable golds" in done.stderr


def test_a_bad_line_is_reported_and_passed_over() -> None:
    good = json.dumps({"id": 1, "gold": "1", "answer": "1"})
    lines = [good, "{", '{"id": 2, "gold": "1"}', '{"id": 3, "gold": true, "answer": "1"}', "[]", good]
    done = grade("--jsonl", text="\n".join(lines))
    assert done.returncode == 1
    assert len(done.stdout.splitlines()) == 2
    for number, why in (
        (2, "not JSON"),
        (3, "'answer' is missing"),
        (4, "'gold' must be text"),
        (5, "not a"),
    ):
        assert f"line {number}: {why}" in done.stderr
    assert "4 of 6 lines could not be read" in done.stderr


def test_other_fields_are_kept_and_missing_ones_and_bad_golds_are_told_of_together() -> None:
    rows = [
        {"id": 1, "gold": "18", "answer": "18", "source": {"a": [1]}, "correct": "before"},
        {"id": 2, "answer": "18"},
        {"id": 3, "gold": "none", "answer": "18"},
    ]
    done = grade("--jsonl", text="\n".join(map(json.dumps, rows)))
    first, _ = map(json.loads, done.stdout.splitlines())
    assert (first["source"], first["correct"]) == ({"a": [1]}, True)
    assert not first.keys() & {"gold", "answer"}
    assert "line 2: 'gold' is missing" in done.stderr
    assert done.stderr.endswith("1 of 3 lines could not be read; 1 of 2 golds are no numbers\n")


def test_wrong_usage() -> None:
    for arguments in ([], ["--jsonl", "--gold", "1"], ["--gold", "1", "--mark", "stars"]):
        assert grade(*arguments).returncode == 2


def test_a_gold_that_is_no_number() -> None:
    done = grade("--gold", "abc", text="#### 18")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--gold 'abc' is no number" in done.stderr
    rows = [{"gold": "abc", "answer": "18"}, {"gold": 18, "answer": "18"}]
    done = grade("--jsonl", text="\n".join(map(json.dumps, rows)))
    assert done.returncode == 1
    assert [json.loads(line)["correct"] for line in done.stdout.splitlines()] == [False, True]
    assert "1 graded: 1 correct" in done.stderr
    assert grade("--jsonl", text=json.dumps(rows[1])).returncode == 0


def test_a_second_opinion() -> None:
    done = grade("--gold", "0.5", "--second-opinion", text="\\boxed{\\frac{1}{2}}")
    if missing_modules("math"):
        assert done.returncode == 2
        assert "pip install 'rl-flywheel[math]'" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    else:
        assert json.loads(done.stdout)["second_opinion"] is True
