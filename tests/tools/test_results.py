from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.cuts import ends
from tests.tools.calls import call, error
from tools.results import as_text


@pytest.mark.parametrize("quotes", [False, True])
def test_a_long_text_keeps_head_and_tail_and_the_form_of_the_result(tmp_path: Path, quotes: bool) -> None:
    result = call(
        "long", {"characters": 300_000, "quotes": quotes}, result_limit=5000, overflow_dir=tmp_path / "o"
    )
    assert result["output"].startswith("HEAD")
    assert result["output"].endswith("TAIL")
    assert "characters left out" in result["output"]
    assert result["exit_code"] == 0
    whole = json.loads(Path(result["truncated"]["file"]).read_text())
    assert len(whole["output"]) == 300_008
    assert result["truncated"]["characters"] == len(Path(result["truncated"]["file"]).read_text())
    assert len(json.dumps(result, ensure_ascii=False)) > 4000


def test_many_small_rows_keep_the_ends_of_the_whole(tmp_path: Path) -> None:
    result = call("long", {"characters": 0, "lines": 5000}, result_limit=3000, overflow_dir=tmp_path)
    assert result["text"].startswith('{"ok": true, "output": "HEADTAIL"')
    assert result["text"].endswith('{"n": 4999, "word": "abc"}]}')
    assert len(json.loads(Path(result["truncated"]["file"]).read_text())["rows"]) == 5000


def test_without_a_folder_or_with_a_broken_one_the_ends_are_still_given(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (None, tmp_path / "file"):
        result = call("long", {"characters": 10_000}, result_limit=1000, overflow_dir=folder)
        assert result["truncated"]["file"] is None
        assert result["output"].endswith("TAIL")


def test_a_long_error_stays_an_error() -> None:
    kind, text = error("fail_async", {"kind": ""}, result_limit=1000)
    assert kind == "internal_error"
    assert text.startswith("ValueError: xxx")


def test_a_result_at_the_limit_is_not_touched() -> None:
    result = {"ok": True, "output": "x" * 1000}
    text = json.dumps(result)
    assert as_text(result, len(text), None, "t") == text
    assert "truncated" in json.loads(as_text(result, len(text) - 1, None, "t"))


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=["Cs"])) | st.integers() | st.text('"\\\n', min_size=100),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
        ),
        max_leaves=30,
    ),
    st.integers(0, 1500),
)
def test_no_result_is_longer_than_its_limit(value: object, limit: int) -> None:
    text = as_text({"ok": True, "value": value}, limit, None, "t")
    assert len(text) <= max(limit, 600)
    assert json.loads(text)["ok"] is True


@given(st.text(), st.integers(0, 50))
def test_ends_count_what_they_leave_out(text: str, keep: int) -> None:
    short = ends(text, keep)
    if len(text) <= keep:
        assert short == text
    else:
        assert f"[... {len(text) - keep} characters left out ...]" in short
