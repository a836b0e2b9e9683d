"""The forms that small Llama models write, and what only looks like one of them."""

from __future__ import annotations

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES, parser_for
from tests.environments.parsers.replay import splits, stream

JSON = '{"name": "get", "parameters": {"a": 1}}'


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.2-1B-Instruct", "Llama-3.2-3B", "Llama-4-Scout"])
@pytest.mark.parametrize(
    "text",
    [
        JSON,
        f"<|python_tag|>{JSON}<|eom_id|>",
        "[get(a=1)]<|eot_id|>",
        "<|python_start|>[get(a=1)]<|python_end|>",
    ],
)
def test_small_llamas_write_json_and_python(model: str, text: str) -> None:
    family = parser_for(model)
    assert family
    parsed = family.parse(text)
    assert [(call.name, call.arguments.replace(" ", "")) for call in parsed.tool_calls] == [
        ("get", '{"a":1}')
    ]
    assert (parsed.content, parsed.errors) == (None, [])
    assert all(stream(family, [], pieces) == parsed for pieces in splits(text))


def test_both_forms_in_one_turn_and_python_is_what_is_written() -> None:
    family = FAMILIES["llama_pythonic"]
    parsed = family.parse(f"First:\n[get(a=1)]\n{JSON}; {JSON}")
    assert ([call.name for call in parsed.tool_calls], parsed.content) == (["get"] * 3, "First:")
    assert family.render([ParsedCall("get", '{"a": 1}')]) == "[get(a=1)]"
