from __future__ import annotations

import errno
import json
import multiprocessing
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl_cli.core.errors import BadUsage, WorkFailed
from rl_cli.core.files import (
    append_jsonl,
    explain_os_error,
    read_json,
    read_jsonl,
    tail_jsonl,
    write_atomic,
    write_json,
)
from rl_cli.core.json_text import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=5)


@given(rows=ROWS, later=ROWS, data=st.data())
def test_a_line_torn_anywhere_costs_that_line_only(
    rows: list[dict[str, object]],
    later: list[dict[str, object]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("torn") / "rows.jsonl"
    for row in rows:
        append_jsonl(path, row)
    content = path.read_bytes() if rows else b""
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    survived = list(read_jsonl(path))
    assert survived == rows[: len(survived)]
    assert len(survived) >= content[:cut].count(b"\n")
    for row in later:
        append_jsonl(path, row)
    assert list(read_jsonl(path)) == survived + later


@given(rows=ROWS, data=st.data())
def test_tail_gives_every_whole_line_once(
    rows: list[dict[str, object]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("tail") / "rows.jsonl"
    source = path.with_name("source.jsonl")
    for row in rows:
        append_jsonl(source, row)
    content = source.read_bytes() if rows else b""
    seen: list[dict[str, object]] = []
    offset = written = 0
    while written < len(content):
        written = data.draw(st.integers(written + 1, len(content)))
        path.write_bytes(content[:written])
        new, offset = tail_jsonl(path, offset)
        seen += new
        assert len(seen) == content[:written].count(b"\n")
    assert seen == rows


def test_tail_of_a_missing_and_of_a_replaced_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert tail_jsonl(path, 0) == ([], 0)
    append_jsonl(path, {"a": 1})
    append_jsonl(path, {"a": 2})
    _, offset = tail_jsonl(path, 0)
    path.unlink()
    append_jsonl(path, {"b": 1})
    assert tail_jsonl(path, offset)[0] == [{"b": 1}]


def _append_many(path: str, writer: int) -> None:
    for i in range(200):
        append_jsonl(path, {"writer": writer, "i": i, "text": "x" * (i * 37 % 5000)})


def test_writers_at_the_same_time_lose_no_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    writers = [
        multiprocessing.get_context("fork").Process(target=_append_many, args=(str(path), w))
        for w in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    rows = list(read_jsonl(path))
    assert sorted((r["writer"], r["i"]) for r in rows) == [(w, i) for w in range(4) for i in range(200)]


def test_lines_that_are_no_rows_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n\0\0\0\n[1]\n\n\xff\xfe\n' + b"[" * 5000 + b'\n{"a": 2}\n{"a":')
    assert list(read_jsonl(path)) == [{"a": 1}, {"a": 2}]


def test_values_that_json_lacks_are_written_as_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    append_jsonl(
        path,
        {"loss": float("nan"), "max": float("-inf"), "half": "\ud83d", "pair": "\ud83d\ude00"},
        fsync=True,
    )
    row = json.loads(path.read_text("utf-8"), parse_constant=lambda name: pytest.fail(name))
    assert row == {"loss": "NaN", "max": "-Infinity", "half": "\ufffd", "pair": "😀"}


def test_a_failed_replacement_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    write_json(path, {"state": "running"})
    with pytest.raises(UnicodeEncodeError):
        write_atomic(path, "\ud800")
    os.mkdir(tmp_path / "folder")
    with pytest.raises(IsADirectoryError):
        write_atomic(tmp_path / "folder", "x")
    assert read_json(path) == {"state": "running"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "state.json"]


def test_nothing_is_written_through_a_link_and_files_have_the_usual_mode(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("foreign")
    link.symlink_to(real)
    with pytest.raises(OSError, match="symbolic links") as error:
        append_jsonl(link, {"a": 1})
    assert "is a link" in explain_os_error(error.value).message
    write_json(link, {"a": 1})
    assert not link.is_symlink()
    assert (read_json(link), real.read_text()) == ({"a": 1}, "foreign")
    assert link.stat().st_mode == real.stat().st_mode


def test_a_pipe_hangs_no_reader_and_no_writer(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for use in (
        lambda: read_json(pipe),
        lambda: list(read_jsonl(pipe)),
        lambda: tail_jsonl(pipe, 0),
        lambda: append_jsonl(pipe, {}),
    ):
        with pytest.raises(OSError, match="a pipe"):
            use()
    with pytest.raises(IsADirectoryError):
        read_json(tmp_path)


def test_json_that_is_nested_too_deeply_is_no_json(tmp_path: Path) -> None:
    deep = tmp_path / "deep"
    deep.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="nested too deeply"):
        read_json(deep)
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 100_000)
    assert list(read_jsonl(deep)) == []


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, WorkFailed, "disk is full"),
        (errno.EROFS, BadUsage, "read-only"),
        (errno.EACCES, BadUsage, "permission"),
        (errno.ENOENT, BadUsage, "does not exist"),
        (errno.EIO, WorkFailed, "rror"),
    ],
)
def test_errors_of_the_system_name_the_path_and_what_is_wrong(number: int, kind: type, words: str) -> None:
    explained = explain_os_error(OSError(number, os.strerror(number), "/some/file"))
    assert type(explained) is kind
    assert words in explained.message
    assert "/some/file" in explained.message
    assert "/other" in explain_os_error(OSError(number, "x"), "/other").message


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full (Linux)")
def test_a_full_disk_is_reported_with_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as error:
        append_jsonl("/dev/full", {"kind": "message"})
    assert "cannot write /dev/full" in explain_os_error(error.value).message


def test_a_missing_folder_is_reported_with_the_file_that_was_to_be_written(tmp_path: Path) -> None:
    for write in (write_json, append_jsonl):
        with pytest.raises(FileNotFoundError) as error:
            write(tmp_path / "none" / "a.json", {})
        assert explain_os_error(error.value).message == f"{tmp_path / 'none' / 'a.json'} does not exist"


def test_secrets_are_masked_in_text_and_rows_and_bytes_are_left_alone(tmp_path: Path):
    key = "sk-test-AAAABBBBCCCCDDDD"
    write_json(tmp_path / "a.json", {"n": 1, key: [f"with {key}"], "password": "hunter22"})
    assert read_json(tmp_path / "a.json") == {
        "n": 1,
        "[redacted]": ["with [redacted]"],
        "password": "[redacted]",
    }
    append_jsonl(tmp_path / "b.jsonl", {"path": tmp_path, "text": f'"{key}"'})
    assert list(read_jsonl(tmp_path / "b.jsonl")) == [{"path": str(tmp_path), "text": '"[redacted]"'}]
    write_atomic(tmp_path / "c.txt", f"see {key}\n")
    assert (tmp_path / "c.txt").read_text() == "see [redacted]\n"
    write_atomic(tmp_path / "d.bin", key.encode())
    assert (tmp_path / "d.bin").read_bytes() == key.encode()
