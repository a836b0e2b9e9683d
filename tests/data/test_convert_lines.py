"""`rl-cli data convert` on lines, files and pipes that are not as they should be: nothing is lost unsaid."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rl_cli.cli.jsonl import LONGEST_LINE
from tests.data.test_convert_command import convert
from tests.e2e.cli import command

USER = {"role": "user", "content": "hi"}


def row(number: int, **fields: Any) -> str:
    return json.dumps({"id": number, "messages": [USER], **fields}) + "\n"


def told(err: str) -> list[str]:
    return [line for line in err.splitlines() if line.startswith("line ")]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_json_lacks_in_a_tool_is_one_clear_error_and_the_rest_goes_on(number: str) -> None:
    tools = '[{"name": "a"}, {"name": "b", "parameters": {"properties": {"n": {"enum": [1, _]}}}}]'
    tools = tools.replace("_", number)
    bad = f'{{"id": 2, "tools": {tools}, "messages": [{{"role": "user", "content": "hi"}}]}}\n'
    done = convert(row(1) + bad + row(3))
    assert [made["id"] for made in done.rows()] == [1, 3]
    assert told(done.err) == [
        "line 2: tools[1].parameters.properties.n.enum[1] is NaN or infinite, which JSON lacks: "
        "write null, a finite number or a text"
    ]
    assert (done.code, "2 converted, 0 rejected" in done.err) == (1, True)


@pytest.mark.parametrize("options", [(), ("--reverse",)])
@pytest.mark.parametrize("field", ['"reward": {"mean": NaN}', '"id": NaN', '"id": -Infinity'])
def test_no_line_is_printed_that_is_no_json(field: str, options: tuple[str, ...]) -> None:
    form = (
        '"conversations": [{"from": "human", "value": "x"}]' if options else '"messages": [{"role": "user"}]'
    )
    done = convert(f"{{{field}, {form}}}\n{{{form}}}\n", *options)
    assert (len(done.rows()), len(told(done.err)), done.code) == (1, 1, 1)
    assert "which JSON lacks" in done.err


def test_halves_of_surrogate_pairs_are_on_no_line() -> None:
    """Loaders of data sets refuse their escapes."""
    done = convert(
        '{"id": "a\\ud800", "note": {"\\udc00": "\\ud83c\\udf78 \\ud83c"}, "messages": 3}\n' + row(2)
    )
    assert "\\ud" not in done.out
    told = done.rows()[0]
    assert (told["id"], told["note"]) == ("a\ufffd", {"\ufffd": "🍸 \ufffd"})


def test_a_number_that_json_lacks_in_a_result_is_text() -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}
    messages = [USER, call, {"role": "tool", "tool_call_id": "a", "content": {"loss": float("nan")}}]
    done = convert(json.dumps({"messages": messages}))
    assert done.code == 0
    back = convert(done.out, "--reverse").rows()[0]["messages"]
    assert back[2]["content"] == '{"loss": NaN}'


def test_tools_may_be_json_in_a_text() -> None:
    tools = [{"type": "function", "function": {"name": "read"}}]
    done = convert(
        row(1, tools=json.dumps(tools)) + row(2, tools=tools) + row(3, tools="") + row(4, tools="x")
    )
    rows = done.rows()
    assert rows[0]["conversations"] == rows[1]["conversations"]
    assert convert(done.out, "--reverse").rows()[2]["tools"] == []
    assert rows[3]["rejected"].startswith("tools are a text that is no JSON list")


def test_tools_that_could_not_be_read_back_are_rejected() -> None:
    deep: Any = 1
    for _ in range(150):
        deep = [deep]
    done = convert(row(1, tools=[{"name": "a", "parameters": {"x": deep}}]) + row(2))
    assert [("rejected" in made) for made in done.rows()] == [True, False]


@pytest.mark.parametrize("field", ["tools", "other", "messages"])
def test_no_depth_ends_the_stream(field: str) -> None:
    """Some depths can be read and not written, some only where less is on the stack."""
    wrapped = {
        "tools": '[{"name": "a", "x": _}]',
        "messages": '[{"role": "user", "content": _}]',
        "other": "_",
    }
    depths = [*range(930, 1000), 50_000]
    lines = [
        f'{{"id": 1, "{field}": {wrapped[field].replace("_", "[" * depth + "]" * depth)}}}'
        for depth in depths
    ]
    done = convert("\n".join([*lines, row(2)]))
    printed = done.out.splitlines()
    assert printed[-1].startswith('{"id": 2, "conversations"')
    assert len(printed) + len(told(done.err)) == len(depths) + 1
    assert done.code == 1
    assert "unexpected" not in done.err


def test_a_field_that_is_there_twice_is_an_error() -> None:
    twice = '{"id": 2, "messages": [{"role": "user", "content": "a", "content": "b"}]}\n'
    done = convert(row(1) + twice + row(3))
    assert [made["id"] for made in done.rows()] == [1, 3]
    assert told(done.err) == ["line 2: not JSON: the field 'content' is there twice in one object"]


def test_byte_order_marks_and_line_ends_of_files_that_were_joined() -> None:
    part = b"\xef\xbb\xbf" + row(1).replace("\n", "\r\n").encode() + b"\r\n \t\r\n"
    done = convert(part + part + row(2).rstrip().encode())
    assert [made["id"] for made in done.rows()] == [1, 1, 2]
    assert done.code == 0


def test_a_line_that_is_too_long_is_passed_over_in_constant_memory(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    for length in (LONGEST_LINE + 1000, 4 * LONGEST_LINE):
        with lines.open("w") as file:
            file.write(row(1) + '{"id": 2, "messages": "')
            file.truncate(length)  # NUL bytes to there, which take no room
            file.seek(0, os.SEEK_END)
            file.write('"}\n' + row(3))
        with lines.open("rb") as file:
            done = subprocess.run(
                ["python3", "-c", LIMITED, *command("data", "convert", "--jsonl")],
                stdin=file,
                capture_output=True,
                text=True,
                timeout=120,
            )
        assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1, 3]
        assert told(done.stderr) == ["line 2: longer than 64 MiB, and passed over"]
        assert int(done.stderr.splitlines()[-1]) < 300_000  # KB


LIMITED = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
"""


def test_a_file_is_not_converted_into_itself(tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(row(1))
    with lines.open("rb") as given, lines.open("ab") as written:
        done = subprocess.run(
            command("data", "convert", "--jsonl"), stdin=given, stdout=written, stderr=-1, timeout=60
        )
    assert (done.returncode, lines.read_text()) == (2, row(1))
    assert "input and output are the same file" in done.stderr.decode()


def test_a_full_disk_is_said() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            command("data", "convert", "--jsonl"), input=row(1).encode(), stdout=full, stderr=-1, timeout=60
        )
    assert done.returncode == 1
    assert "the disk is full" in done.stderr.decode()


def test_a_reader_that_goes_away_ends_it() -> None:
    shell = f"'{command()[0]}' data convert --jsonl | head -n 1"
    done = subprocess.run(shell, shell=True, input=(row(1) * 3000).encode(), capture_output=True, timeout=120)
    assert json.loads(done.stdout)["id"] == 1
    assert b"Traceback" not in done.stderr
    assert b"unexpected" not in done.stderr


def test_a_killed_conversion_leaves_whole_lines_in_order(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with out.open("wb") as written:
        process = subprocess.Popen(
            command("data", "convert", "--jsonl"),
            stdin=subprocess.PIPE,
            stdout=written,
            stderr=subprocess.DEVNULL,
        )
    assert process.stdin
    with process.stdin as lines:
        for number in range(50):
            lines.write(row(number, note="x" * 100_000).encode())
        lines.flush()
        while out.stat().st_size < 1_000_000:
            assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    *whole, _ = out.read_text().split("\n")
    assert [json.loads(line)["id"] for line in whole] == list(range(len(whole)))
    assert len(whole) >= 9
