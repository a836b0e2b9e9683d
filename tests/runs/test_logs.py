from __future__ import annotations

from pathlib import Path

from rl_cli.runs.logs import Tail, last_lines, telling_line


def test_last_lines_are_the_meaningful_ones(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_bytes(b"start\n\n\x1b[31mred\x1b[0m\n10%\r50%\r100%\nwindows\r\n   \ncaf\xc3\n")
    assert last_lines(log) == ["start", "red", "100%", "windows", "caf\ufffd"]
    assert last_lines(log, 2) == ["windows", "caf\ufffd"]
    assert last_lines(tmp_path / "none.log") == []


def test_a_long_log_is_read_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text("".join(f"line {i}\n" for i in range(100_000)))
    assert last_lines(log, 3) == ["line 99997", "line 99998", "line 99999"]


def test_the_telling_line_is_the_last_error() -> None:
    lines = ["ValueError: first", "torch.OutOfMemoryError: CUDA out of memory", "wandb: uploading"]
    assert telling_line(lines) == "torch.OutOfMemoryError: CUDA out of memory"
    assert telling_line(["Fatal Python error: Aborted", "  File x"]) == "Fatal Python error: Aborted"
    assert telling_line(["nothing wrong", "the end"]) == "the end"
    assert telling_line([]) is None


def test_a_tail_begins_some_lines_back_and_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "trainer.log"
    log.write_text("a\nb\nc\n")
    tail = Tail(log, 2)
    assert tail.read() == "b\nc\n"
    with log.open("a") as file:
        file.write("d\n")
    assert tail.read() == "d\n"
    assert tail.read() == ""
    assert Tail(log, 0).read() == ""
    assert Tail(log, 99).read() == "a\nb\nc\nd\n"
