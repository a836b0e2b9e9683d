"""`rl-cli data show` in a terminal and out of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_cli.core.messages import assistant, user
from tests.data.rows_kit import SEARCH, calling, plain, row, run_here, write_rows
from tests.e2e.terminal import Terminal

LONG = "first line\n" + "x" * 500
KEY = "sk-test-AAAABBBBCCCCDDDD"


@pytest.fixture
def rows(tmp_path: Path) -> str:
    given = [plain(1, marks=["no_reasoning"], score=0.5), calling(2, SEARCH, '{"city": "Oslo"}', LONG)]
    return str(write_rows(tmp_path / "rows.jsonl", given))


def test_plain_text_with_calls_folded_out_of_a_terminal(rows: str) -> None:
    done = run_here("data", "show", rows)
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    first, second = done.out.split("\n\n")[:2]
    assert first.splitlines()[1:] == ["user      Question 1?", "assistant Answer 1."]
    assert "score 0.5" in first
    assert "marks no_reasoning" in first
    lines = second.splitlines()
    assert lines[4] == 'call      search({"city": "Oslo"})'
    assert lines[5].startswith("result    search: first line xxx")
    assert lines[5].endswith("… (511 characters)")
    assert "x" * 500 in run_here("data", "show", rows, "--full").out


def test_a_row_that_is_not_there_is_told_with_those_that_are(rows: str, tmp_path: Path) -> None:
    done = run_here("data", "show", rows, "--row", "3")
    assert (done.code, done.out) == (2, "")
    assert "there is no row '3' (a number from 1 to 2, or the beginning of a key)" in done.err
    empty = write_rows(tmp_path / "empty.jsonl", [])
    assert "there are no rows at all" in run_here("data", "show", str(empty), "--row", "1").err


def test_a_terminal_gets_colours_unless_no_color_is_set(rows: str) -> None:
    for environment, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        with Terminal("data", "show", rows, PAGER="cat", **environment) as terminal:
            terminal.expect("Done.")
            assert ("\x1b[36muser" in terminal.raw) == coloured
            assert "\x1b" not in terminal.raw or coloured


def test_leaving_the_pager_ends_quietly(tmp_path: Path) -> None:
    many = write_rows(tmp_path / "many.jsonl", [plain(n) for n in range(1000)])
    with Terminal("data", "show", str(many), PAGER="head -n 2") as terminal:
        assert terminal.process.wait(60) == 0
        assert "Error" not in terminal.seen


def test_hostile_text_moves_no_cursor_and_secrets_are_masked(tmp_path: Path) -> None:
    bad = f"\x1b[2J\x1b]0;owned\x07 \u202e {KEY}"
    given = [row(1, [user(bad), assistant(bad)], [], model=bad, marks=[bad])]
    done = run_here("data", "show", str(write_rows(tmp_path / "rows.jsonl", given)))
    assert done.code == 0
    assert not {"\x1b", "\x07", "\u202e"} & set(done.out)
    assert KEY not in done.out


def test_odd_figures_are_shown_too(tmp_path: Path) -> None:
    odd = plain(1, cost_usd=10**400, score=True, marks=["a", 3], model=["x"])
    done = run_here("data", "show", str(write_rows(tmp_path / "rows.jsonl", [{**odd, "key": {"a": 1}}])))
    assert (done.code, "cost $1.000e+400 · marks a\n" in done.out, "score" in done.out) == (0, True, False)


def test_one_row_by_number_or_key(rows: str) -> None:
    assert "Question 1?" not in run_here("data", "show", rows, "--row", "2").out
    [found] = run_here("data", "show", rows, "--row", f"{1:032x}", "--json").rows()
    assert found["score"] == 0.5
    none = run_here("data", "show", rows, "--row", "9")
    assert (none.code, none.err.count("\n")) == (2, 1)


def test_a_bad_line_is_told_and_the_rest_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{nope\n" + json.dumps(plain(1)) + '\n{"messages": 3}\n')
    done = run_here("data", "show", str(path))
    assert done.code == 1
    assert "Answer 1." in done.out
    assert [line.partition(":")[0] for line in done.err.splitlines()] == ["line 1", "line 3", "error"]


def test_bad_lines_are_told_up_to_a_number(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("no row\n" * 25)
    done = run_here("data", "show", str(tmp_path / "rows.jsonl"))
    assert done.code == 1
    assert sum(line.startswith("line ") for line in done.err.splitlines()) == 20
    assert "... and 5 more\n" in done.err
    assert "25 lines could not be read" in done.err


def test_a_batch_by_its_name(home: Path) -> None:
    folder = home / "batches" / "demo"
    folder.mkdir(parents=True)
    early = run_here("data", "show", "demo")
    assert (early.code, "data merge demo" in early.err) == (2, True)
    write_rows(folder / "trajectories.jsonl", [plain(1)])
    assert "Answer 1." in run_here("data", "show", "demo").out
    wrong = run_here("data", "show", "dema")
    assert (wrong.code, "did you mean demo?" in wrong.err) == (2, True)
