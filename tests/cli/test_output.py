from __future__ import annotations

import io
import json

import pytest

from rl_cli.cli.display import JsonDisplay
from rl_cli.cli.output import cell, print_fields, print_json, print_table
from rl_cli.cli.wrapping import display_width


def test_columns_align_whatever_the_width_of_the_characters(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["name", "value"], [["训练", 1], ["e\u0301", None], ["a\nb", 0.123456]])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    starts = {display_width(line[: len(line) - len(line.split()[-1])]) for line in lines}
    assert len(starts) == 1
    assert lines[3] == "a b   0.1235"


def test_an_empty_table_says_so_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a"], [], empty="no runs yet")
    assert capsys.readouterr() == ("", "no runs yet\n")


def test_fields_and_cells(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"id": "x", "learning rate": 1e-4, "ok": True, "tags": []})
    assert capsys.readouterr().out.splitlines()[1:] == [
        "learning rate  0.0001",
        "ok             yes",
        "tags           -",
    ]
    assert cell({"a": float("nan")}) == '{"a": "NaN"}'
    assert cell(["a", None]) == "a, -"


def test_json_for_programs_holds_nothing_that_a_terminal_would_obey(
    capsys: pytest.CaptureFixture[str],
) -> None:
    value = {"\x9b31m": "a\u202eb\x1b[2J", "训练": "é"}
    print_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert out.rstrip("\n").isprintable()
    assert "训练" in out
    shown = io.StringIO()
    JsonDisplay(shown)._write({"kind": "x", "text": "\x9b\u2066"})
    assert shown.getvalue().rstrip("\n").isprintable()


def test_a_very_long_name_moves_only_its_own_value(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"id": "x", "n" * 200: 1})
    first, second = capsys.readouterr().out.splitlines()
    assert len(first) < 60
    assert second == "n" * 200 + "  1"
