from __future__ import annotations

from pathlib import Path

from rl_cli.runs.logs import Tail, last_lines, telling_line
from rl_cli.runs.stack_dumps import in_traceback_order


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


def test_a_dump_of_the_fault_handler_ends_where_it_hangs(tmp_path: Path) -> None:
    dump = [
        "Fatal Python error: Aborted",
        "Current thread 0x00007f00 (most recent call first):",
        *(f'  File "m.py", line {i} in f{i}' for i in range(40)),
        "  ...",
        "Thread 0x00007f01 [waits] (most recent call first):",
        '  File "threading.py", line 331 in wait',
        "Extension modules: numpy (total: 1)",
    ]
    told = in_traceback_order(["before", *dump, "after"])
    assert told[:3] == ["before", "Thread 0x00007f01 [waits] (most recent call last):", dump[-2]]
    assert told[3:5] == ["Current thread 0x00007f00 (most recent call last):", "  ..."]
    assert told[-4:] == [dump[3], dump[2], dump[0], "after"]
    log = tmp_path / "trainer.log"
    log.write_text("\n".join(dump))
    assert last_lines(log, 3) == [dump[3], dump[2], dump[0]]
    assert telling_line(last_lines(log)) == dump[0]


def test_lines_that_are_no_dump_stay_in_their_order() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "m.py", line 1',
        "ValueError: x",
        "  indented",
        "end",
    ]
    assert in_traceback_order(lines) == lines
