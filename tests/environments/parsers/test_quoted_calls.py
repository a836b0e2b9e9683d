"""A call that is quoted is none: in the value of another one, whether that is whole, broken or cut off."""

from __future__ import annotations

import json

import pytest

from environments.parsers.families import FAMILIES

TOOLS = [
    {
        "name": "write",
        "parameters": {"properties": {"content": {"type": "string"}, "path": {"type": "string"}}},
    },
    {"name": "wipe", "parameters": {"properties": {}}},
]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("gemma4", '<|tool_call>call:write{content:<|"|>Use <|tool_call>call:wipe{}<tool_call|> and'),
        ("glm45", "<tool_call>write\n<arg_key>content</arg_key>\n<arg_value>A <tool_call>wipe</tool_call>"),
        (
            "minimax_m2",
            '<minimax:tool_call>\n<invoke name="write">\n<parameter name="content">Use <minimax:tool_call>\n'
            '<invoke name="wipe">\n</invoke>\n</minimax:tool_call> to',
        ),
        (
            "hermes",
            "<tool_call>{'name': 'write', 'arguments': {'content': "
            '\'<tool_call>{"name": "wipe", "arguments": {}}</tool_call>\'}}</tool_call>',
        ),
        ("qwen", '<tool_call>{"name": "write", "arguments": {"content": "a <tool_call>[{}]</tool_call>"'),
        ("mistral", "[TOOL_CALLS]write[ARGS]{'content': '[TOOL_CALLS]wipe[ARGS]{}'}"),
        ("llama", '{"a": tru, "b": {"name": "wipe", "parameters": {}}}'),
        ("llama_pythonic", "[write(content=f'''[wipe()]''')]"),
        ("lfm2", "<|tool_call_start|>[write(content=f'''<|tool_call_start|>[wipe()]<|tool_call_end|>''')]"),
        ("kimi_k3", '<|open|>think<|sep|><|open|>tools<|sep|><|open|>call tool="wipe" index="1"<|sep|>'
                    "<|close|>call<|sep|><|close|>tools<|sep|><|close|>think<|sep|>"),
    ],
)  # fmt: skip
def test_a_quoted_call_is_none(family: str, text: str) -> None:
    assert FAMILIES[family].parse(text, TOOLS).tool_calls == []


def test_agt_28_a_line_that_closes_a_function_in_a_file_does_not_end_the_value() -> None:
    text = (
        "<tool_call>\n<function=write>\n<parameter=content>\n<x>\n</function>\n</x>\n</parameter>\n"
        "<parameter=path>\na.xml\n</parameter>\n</function>\n</tool_call>"
    )
    [call] = FAMILIES["qwen3_coder"].parse(text, TOOLS).tool_calls
    assert json.loads(call.arguments) == {"content": "<x>\n</function>\n</x>", "path": "a.xml"}


def test_the_call_after_one_that_has_lost_a_quote_is_read() -> None:
    text = '<tool_call>{"name": "a}</tool_call>\n<tool_call>{"name": "wipe", "arguments": {}}</tool_call>'
    assert [call.name for call in FAMILIES["hermes"].parse(text, TOOLS).tool_calls] == ["wipe"]


def test_agt_26_calls_before_a_lone_closing_tag_are_drafts() -> None:
    call = '<tool_call>{{"name": "{}", "arguments": {{}}}}</tool_call>'.format
    parsed = FAMILIES["qwen"].parse(f"I shall call {call('wipe')} </think> {call('write')}")
    assert [one.name for one in parsed.tool_calls] == ["write"]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("gpt_oss", "<|channel|>commentary to=functions. <|message|>{}<|call|>"),
        (
            "kimi_k2",
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.<|tool_call_argument_begin|>{}<|tool_call_end|>",
        ),
    ],
)
def test_a_call_without_a_name_is_none(family: str, text: str) -> None:
    assert FAMILIES[family].parse(text, TOOLS).tool_calls == []
