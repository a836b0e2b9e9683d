"""Patches: exactly what was meant, or an error that shows what comes nearest."""

from __future__ import annotations

import difflib
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.dispatcher import ToolError
from tools.everyday.text_edits import apply_hunks, read_diff, replace_exactly

CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"


def patched(text: str, diff: str) -> str:
    [file] = read_diff(diff)
    return apply_hunks(text, file.hunks)


def test_one_exact_piece_is_replaced() -> None:
    assert replace_exactly(CODE, "a + b", "b + a", False) == (CODE.replace("a + b", "b + a"), 1)
    assert replace_exactly("x x x", "x", "y", True) == ("y y y", 3)
    assert replace_exactly("a\r\nb\r\nc\r\n", "a\nb\n", "A\nB\n", False)[0] == "A\r\nB\r\nc\r\n"


@pytest.mark.parametrize(
    ("old", "type", "said"),
    [
        ("", "invalid_arguments", "empty"),
        ("(a, b)", "ambiguous", "2 times, at lines 1, 5"),
        ("\treturn a + b", "not_found", "line 2:\n    return a + b"),
        ("def sub(a, c):\n    return a-c", "not_found", "line 5:\ndef sub(a, b):"),
        ("something else entirely", "not_found", "copy the text exactly"),
    ],
)
def test_what_does_not_fit_is_shown_what_comes_nearest(old: str, type: str, said: str) -> None:
    with pytest.raises(ToolError) as raised:
        replace_exactly(CODE, old, "", False)
    assert raised.value.type == type
    assert said in f"{raised.value.message} {raised.value.hint}"


def test_a_diff_that_moved_still_fits() -> None:
    diff = "@@ -2,1 +2,1 @@\n-    return a - b\n+    return b - a\n"
    assert patched("# new\n" * 3 + CODE, diff) == "# new\n" * 3 + CODE.replace("a - b", "b - a")


def test_a_diff_names_its_files_and_makes_new_ones() -> None:
    diff = (
        "diff --git a/x.py b/x.py\nindex 1..2\n--- a/x.py\t2020\n+++ b/x.py\t2020\n@@ -1 +1 @@\n-1\n+2\n"
        "--- /dev/null\n+++ b/d/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    )
    first, second = read_diff(diff)
    assert [(file.name, file.creates) for file in (first, second)] == [("x.py", False), ("d/new.txt", True)]
    assert apply_hunks("1\n", first.hunks) == "2\n"
    assert apply_hunks("", second.hunks) == "one\ntwo"


@pytest.mark.parametrize(
    ("before", "diff", "after"),
    [
        ("a\n\f\nint x;\n", " a\n \f\n-int x;\n+int y;\n", "a\n\f\nint y;\n"),
        ("a\u2028b\n1\n", " a\u2028b\n-1\n+2\n", "a\u2028b\n2\n"),
        ("a\rb\n1\n", " a\rb\n-1\n+2\n", "a\rb\n2\n"),
        ("a\r\nb\nc\n", "-b\n+B\n c\n", "a\r\nB\nc\n"),
        ("a\r\nb\nc\n", "-a\n+A\n b\n", "A\nb\nc\n"),
        ("a\r\nb\nc\n", "-a\r\n+A\r\n b\n", "A\r\nb\nc\n"),
        ("a\r\nb\nc\n", "-a\r\n+a\n b\n", "a\nb\nc\n"),
        ("a\r\nb\r\n", " a\n-b\n+B\n", "a\r\nB\r\n"),
        ("a\nb\n", " a\r\n-b\r\n+B\r\n", "a\nB\n"),
        ("a\r\n", " a\n+b\n", "a\r\nb\r\n"),
        ("a\r\nb", " a\n-b\n\\ No newline at end of file\n+B\n\\ No newline at end of file\n", "a\r\nB"),
        ("a\r\nb", " a\n-b\n\\ No newline at end of file\n+b\n", "a\r\nb\r\n"),
        ("a\r\nb\r\n", " a\n-b\n+b\n\\ No newline at end of file\n", "a\r\nb"),
    ],
)
def test_only_a_newline_ends_a_line_and_a_file_keeps_its_own_ends(before: str, diff: str, after: str) -> None:
    counts = {mark: sum(line[:1] in (" ", mark) for line in diff.split("\n")) for mark in "-+"}
    assert patched(before, f"@@ -1,{counts['-']} +1,{counts['+']} @@\n{diff}") == after


def test_a_diff_with_line_ends_of_its_own_is_read_without_them() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n".replace("\n", "\r\n")
    assert [patched(text, diff) for text in ("a\nb\n", "a\r\nb\r\n")] == ["a\nB\n", "a\r\nB\r\n"]
    assert patched("", "@@ -0,0 +1,2 @@\n+a\r\n+b\r\n") == "a\r\nb\r\n"


def test_a_piece_is_found_in_a_file_of_mixed_line_ends() -> None:
    assert replace_exactly("a\r\nb\nc\n", "b\nc", "B\nC", False) == ("a\r\nB\nC\n", 1)


def test_what_does_not_fit_is_said_soon() -> None:
    letters = random.Random(0)
    lines = ["".join(letters.choices("ab", k=700)) for _ in range(5000)]
    same = "a\n" * 500_000
    began = time.monotonic()
    with pytest.raises(ToolError):
        replace_exactly("\n".join(lines[1:]), lines[0], "", False)
    with pytest.raises(ToolError):
        replace_exactly(same, "a", "", False)
    with pytest.raises(ToolError):
        patched(same, "@@ -1,5001 +1,5000 @@\n" + " a\n" * 5000 + "-b\n")
    with pytest.raises(ToolError):
        replace_exactly(same, "a", "b" * 1000, True)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("diff", "type"),
    [
        ("hello", "invalid_diff"),
        (f"@@ -{'1' * 5000} +1 @@\n-same\n+other\n", "invalid_diff"),
        ("@@ ... @@\n-same\n+other\n", "invalid_diff"),
        ("@@ -1,2 +1,1 @@\n-a\n+b\n", "invalid_diff"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "invalid_diff"),
        ("rename from a\nrename to b\n", "invalid_diff"),
        ("@@ -7,1 +7,1 @@\n-same\n+other\n", "ambiguous"),
        ("@@ -1,2 +1,2 @@\n nothing like it\n-same\n+other\n", "not_found"),
    ],
)
def test_a_diff_that_does_not_fit_changes_nothing(diff: str, type: str) -> None:
    with pytest.raises(ToolError) as raised:
        patched("same\nx\nsame\n", diff)
    assert raised.value.type == type


LINES = st.lists(st.sampled_from(["", "a", "b", "  c", "- d", "+ e", "@@ f", "\\ g"]), max_size=30)


@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 3))
def test_every_diff_of_difflib_is_applied(
    before: list[str], after: list[str], open_before: bool, open_after: bool, context: int
) -> None:
    def text_of(lines: list[str], is_open: bool) -> str:
        return "\n".join(lines) + ("" if is_open or not lines else "\n")

    old, new = text_of(before, open_before), text_of(after, open_after)
    diff = ""
    for line in difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/x", "b/x", n=context):
        diff += line if line.endswith("\n") else line + "\n\\ No newline at end of file\n"
    if diff:
        assert patched(old, diff) == new
