"""`rl-cli parse`, as a person or a program runs it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from environments.parsers.families import FAMILIES
from tests.e2e.cli import Outcome, command, piped

STEPS = {"type": "object", "properties": {"steps": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "move", "parameters": STEPS}}]
MOVE = "<tool_call>\n<function=move>\n<parameter=steps>\n3\n</parameter>\n</function>\n</tool_call>"


def parse(given: str | bytes, *options: str, cwd: Path | None = None) -> Outcome:
    raw = given if isinstance(given, bytes) else given.encode()
    return piped(raw, "parse", *options, cwd=cwd)


def found(given: str | bytes, *options: str, cwd: Path | None = None) -> dict[str, Any]:
    done = parse(given, *options, cwd=cwd)
    assert (done.code, done.err) == (0, "")
    (row,) = done.rows()
    return row


def running(*options: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command("parse", *options), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def written(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin
    process.stdin.write(text.encode())
    process.stdin.flush()


def next_row(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout
    return json.loads(process.stdout.readline())


def test_a_text_comes_apart_and_nothing_in_it_is_changed() -> None:
    arguments = '{"key":  "sk-proj-abcdefghijklmnopqrstuvwxyz012345", "to": "Zürich 日本\\ud800"}'
    text = (
        f'<think>\nhm\n</think>\nI send it.\n<tool_call>\n{{"name": "send", "arguments": {arguments}}}\n'
        '</tool_call>\n<tool_call>{"name": "send", "arguments": {}}</tool_call>\n<tool_call>oops</tool_call>'
    )
    assert found(text, "--family", "hermes") == {
        "content": "I send it.\n\n<tool_call>oops</tool_call>",
        "reasoning": "hm",
        "tool_calls": [
            {"id": "call_0", "name": "send", "arguments": arguments},
            {"id": "call_1", "name": "send", "arguments": "{}"},
        ],
        "errors": [{"position": text.index("<tool_call>oops"), "reason": "no JSON follows <tool_call>"}],
    }


def test_a_text_without_anything_is_one_object_too() -> None:
    assert found("", "--family", "llama", "--variant", "pythonic") == {
        "content": None,
        "reasoning": None,
        "tool_calls": [],
        "errors": [],
    }


def test_the_models_name_tells_the_family_and_its_own_ids_are_kept() -> None:
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.move:4<|tool_call_argument_begin|>"
        '{"steps": 2}<|tool_call_end|><|tool_calls_section_end|>'
    )
    (call,) = found(text, "--model", "moonshotai/Kimi-K2-Instruct")["tool_calls"]
    assert call == {"id": "functions.move:4", "name": "move", "arguments": '{"steps": 2}'}


def test_arguments_follow_the_schemas_of_the_tools_that_were_offered(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    for options, value in (((), "3"), (("--tools", "tools.json"), 3)):
        (call,) = found(MOVE, "--family", "qwen3_coder", *options, cwd=tmp_path)["tool_calls"]
        assert json.loads(call["arguments"]) == {"steps": value}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--family", "hermez"), "unknown family 'hermez' (did you mean hermes?)"),
        (("--family", "hermes", "--variant", "x"), "no variant 'x' of hermes: it has none"),
        (("--family", "mistral", "--variant", "x"), "no variant 'x' of mistral: pre_v11"),
        (("--model", "a-model-of-mine"), "'a-model-of-mine' tells no family (give one with --family"),
        (("--model", "my/lama-8b"), "give one with --family; did you mean llama"),
        ((), "by --family, or --model"),
        (("--family", "hermes", "--model", "qwen3"), "both --family and --model were given"),
        (("--family", "Qwen/Qwen3-8B"), "a model's name goes with --model"),
        (("--model", "llama-3.1", "--variant", "pythonic"), "--variant goes with --family only"),
        (("--list", "--stream"), "--list goes with no other option"),
        (("--family", "hermes", "--tools", "number.json"), "number.json: a tool is neither a schema"),
        (("--family", "hermes", "--tools", "none.json"), "none.json does not exist"),
        (("--family", "hermes", "--tools", "broken.json"), "broken.json is not JSON"),
        (("--family", "hermes", "--tools", "object.json"), "object.json holds no list of tools"),
        (("--jsonl", "--family", "hermes"), "each line has its own family"),
    ],
)
def test_bad_usage_is_one_line(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    (tmp_path / "broken.json").write_text("[")
    (tmp_path / "object.json").write_text("{}")
    (tmp_path / "number.json").write_text("[5]")
    done = parse("text", *options, cwd=tmp_path)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert words in done.err


def test_the_families_are_listed() -> None:
    done = parse("", "--list")
    assert (done.code, done.out.split()) == (0, list(FAMILIES))


def test_tools_may_be_names_alone(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('["move"]')
    text = 'See {"name": "fly", "parameters": {}} and {"name": "move", "parameters": {}}'
    row = found(text, "--family", "llama", "--tools", "tools.json", cwd=tmp_path)
    assert [call["name"] for call in row["tool_calls"]] == ["move"]


def test_a_stream_is_told_while_it_comes_and_ends_with_the_whole() -> None:
    pieces = ["<think>hm</think>Lo", "ok: <tool", '_call>{"name": "move", "argum', 'ents": {"steps"', ": 3}}"]
    process = running("--family", "hermes", "--stream")
    written(process, pieces[0])
    assert next_row(process) == {"event": "reasoning_delta", "text": "hm"}
    assert next_row(process) == {"event": "content_delta", "text": "Lo"}
    for piece in pieces[1:4]:
        written(process, piece)
    assert next_row(process)["text"] == "ok:"
    assert next_row(process) == {"event": "call_started", "index": 0, "name": "move"}
    written(process, pieces[4])
    assert process.stdin
    assert process.stdout
    process.stdin.close()
    *events, last = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert process.wait(60) == 0
    arguments = "".join(event["text"] for event in events if event["event"] == "arguments_delta")
    assert (arguments, events[-1]["event"]) == ('{"steps": 3}', "call_finished")
    assert last == found("".join(pieces), "--family", "hermes")


def test_characters_that_are_cut_between_pieces_and_bytes_that_are_none() -> None:
    assert found("日本".encode() + b"\xff", "--family", "hermes")["content"] == "日本\udcff"
    process = running("--family", "hermes", "--stream")
    assert process.stdin
    for byte in "日本".encode():
        process.stdin.write(bytes([byte]))
        process.stdin.flush()
    out, _ = process.communicate(timeout=60)
    assert json.loads(out.splitlines()[-1])["content"] == "日本"


def test_each_line_is_answered_at_once() -> None:
    process = running("--jsonl")
    for number in range(3):
        written(process, json.dumps({"id": number, "family": "hermes", "text": f"a{number}"}) + "\n")
        assert next_row(process) == {
            "id": number,
            "content": f"a{number}",
            "reasoning": None,
            "tool_calls": [],
            "errors": [],
        }
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (b"", 0)


def test_a_line_may_name_its_model_hold_its_tools_as_text_and_keep_other_fields() -> None:
    row = {"id": 1, "model": "Qwen/Qwen3-Coder-480B", "text": MOVE, "tools": json.dumps(TOOLS), "n": [1]}
    made = found(json.dumps({**row, "content": "before"}), "--jsonl")
    assert json.loads(made["tool_calls"][0]["arguments"]) == {"steps": 3}
    assert (made["n"], made["content"]) == ([1], None)
    assert not made.keys() & {"model", "text", "tools"}
    for wrong, words in (
        ({"family": "qwen"}, "both 'family' and 'model' were given"),
        ({"model": None}, "by 'family', or 'model'"),
        ({"text": None}, "'text' is missing"),
        ({"tools": [5]}, "a tool is neither a schema with a name nor a name: 5"),
        ({"tools": "none"}, "tools are a text that is no JSON list"),
    ):
        assert words in parse(json.dumps({**row, **wrong}), "--jsonl").err


def test_bad_lines_are_told_of_by_number_and_the_others_are_parsed() -> None:
    old = '[TOOL_CALLS][{"name": "move", "arguments": {}}]'
    rows: list[Any] = [
        {"id": "lone", "family": "qwen", "text": "half \ud83d of two", "tools": None},
        {"id": 2, "family": "mistral", "variant": "pre_v11", "text": old},
        {"id": None, "family": "qwen3_coder", "text": MOVE, "tools": TOOLS},
        {"id": 4, "family": "qwne", "text": ""},
        {"id": 5, "family": "qwen"},
        {"id": 6, "family": "qwen", "text": "", "tools": {}},
        [],
    ]
    lines = [json.dumps(row).encode() for row in rows]
    done = parse(b"\n".join([*lines[:1], b"", b"{oops", *lines[1:], b"\xff", b"[" * 50_000, b""]), "--jsonl")
    assert done.code == 1
    assert [row["id"] for row in done.rows()] == ["lone", 2, None]
    lone, two, three = done.rows()
    assert lone["content"] == "half \ud83d of two"
    assert "\\ud83d" in done.out
    assert [call["name"] for call in two["tool_calls"]] == ["move"]
    assert json.loads(three["tool_calls"][0]["arguments"]) == {"steps": 3}
    said = done.err.splitlines()
    assert [line.partition(":")[0] for line in said[:-1]] == [f"line {n}" for n in (3, 6, 7, 8, 9, 10, 11)]
    assert "did you mean qwen?" in said[1]
    assert said[-1] == "error: 7 of 10 lines could not be read"


def test_lines_take_no_more_memory_the_more_there_are() -> None:
    def peak(count: int) -> int:
        """Kilobytes, of the parsing process."""
        line = json.dumps({"id": 1, "family": "hermes", "text": "word " * 40_000}).encode() + b"\n"
        process = subprocess.Popen(
            command("parse", "--jsonl"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert process.stdin
        for _ in range(count):
            process.stdin.write(line)
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return used.ru_maxrss

    assert peak(200) < peak(4) + 10_000


def test_the_prompt_may_have_opened_the_reasoning() -> None:
    text = f"so {MOVE}</think>done"
    wanted = {"content": "done", "reasoning": f"so {MOVE}", "tool_calls": [], "errors": []}
    cut = {**wanted, "content": None, "reasoning": "cut"}
    assert found(text, "--family", "qwen3_coder", "--in-reasoning") == wanted
    assert found("cut", "--family", "qwen3_coder", "--in-reasoning") == cut
    assert parse("cut", "--family", "qwen3_coder", "--in-reasoning", "--stream").rows()[-1] == cut
    row = {"id": 1, "family": "qwen3_coder", "text": "cut", "other": "key"}
    for said, result in ((True, cut), (None, {**cut, "content": "cut", "reasoning": None})):
        assert found(json.dumps({**row, "in_reasoning": said}), "--jsonl") == {
            "id": 1,
            **result,
            "other": "key",
        }
    assert (
        "'in_reasoning' must be true or false" in parse(json.dumps({**row, "in_reasoning": 1}), "--jsonl").err
    )


def test_a_byte_order_mark_is_dropped_and_other_bytes_are_the_same_in_both_ways() -> None:
    text = "\ufeff{}".encode() + b"\xff\n"
    line = b'\xef\xbb\xbf{"family": "hermes", "text": "{}\xff"}\n'
    assert found(text, "--family", "hermes")["content"] == "{}\udcff"
    assert found(line, "--jsonl")["content"] == "{}\udcff"
    assert parse(b"\xef\xbb\xbf\n", "--jsonl") == Outcome(0, "", "")
