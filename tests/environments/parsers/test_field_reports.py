"""Faults that users of such systems reported, by id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from environments.parsers.base import ParsedCall
from environments.parsers.families import FAMILIES
from environments.parsers.parser import Family

with_thinking = pytest.mark.parametrize(
    "family", [family for family in FAMILIES.values() if family.thinking], ids=lambda family: family.name
)
PLAN = ParsedCall("plan", '{"day": "2030-02-01"}')
with_parameters = pytest.mark.parametrize(
    "name",
    [
        "qwen3_coder",
        "nemotron_v3",
        "step3p5",
        "seed_oss",
        "glm45",
        "glm47",
        "minimax_m2",
        "minimax_m3",
        "step3",
    ],
)


@with_thinking
def test_agt_26_a_call_inside_thinking_is_not_made(family: Family) -> None:
    call, block = family.render([PLAN]), family.thinking[0]
    parsed = family.parse(f"{block.opener}I shall call {call}{block.closer}{call}")
    assert [call.name for call in parsed.tool_calls] == ["plan"]
    assert "I shall call" in (parsed.reasoning or "")
    assert call in (parsed.reasoning or "")


@with_thinking
def test_agt_26_an_unclosed_block_holds_no_calls(family: Family) -> None:
    call, block = family.render([PLAN]), family.thinking[0]
    parsed = family.parse(f"{block.opener}I shall call {call}")
    assert (parsed.tool_calls, parsed.content) == ([], None)
    assert call in (parsed.reasoning or "")


@with_parameters
@pytest.mark.parametrize(
    ("kind", "text", "read"),
    [
        ("integer", "2030-02-01", "2030-02-01"),
        ("integer", "seven", "seven"),
        ("number", "1,5", "1,5"),
        ("number", "NaN", "NaN"),
        ("boolean", "True", True),
        ("boolean", "perhaps", "perhaps"),
        ("string", "null", "null"),
        ("array", "[3, 4", "[3, 4"),
        ("object", "{'a': 1}", "{'a': 1}"),
    ],
)
def test_agt_27_a_value_of_another_type_stays_text(name: str, kind: str, text: str, read: Any) -> None:
    family = FAMILIES[name]
    tools = [{"name": "log", "parameters": {"properties": {"day": {"type": kind}}}}]
    parsed = family.parse(family.render([ParsedCall("log", json.dumps({"day": text}))]), tools)
    assert [(call.name, json.loads(call.arguments)) for call in parsed.tool_calls] == [("log", {"day": read})]
    assert parsed.errors == []


@with_parameters
@pytest.mark.parametrize("tag", ["</parameter>", "</arg_value>", "</tool_call>", "</invoke>", "</think>"])
def test_agt_28_a_closing_tag_in_a_value_does_not_end_it(name: str, tag: str) -> None:
    family, script = FAMILIES[name], f"grep -c '{tag}' notes.xml && echo \"{tag}\"\ncat <<END\n{tag}\nEND"
    written = ParsedCall("bash", json.dumps({"script": script}))
    parsed = family.parse(family.render([written]))
    assert [json.loads(call.arguments) for call in parsed.tool_calls] == [{"script": script}]


@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - {"minimax_m3"}))  # its marks cannot be in a value
def test_agt_28_the_own_marks_in_a_json_string_do_not_end_it(name: str) -> None:
    family = FAMILIES[name]
    marks = [mark for mark in family.grammar.openers if len(mark) > 1]
    script = f"echo '</tool_call> {' '.join(marks)} <|im_end|>'"
    written = ParsedCall("bash", json.dumps({"script": script}))
    parsed = family.parse(family.render([written, written]))
    assert [json.loads(call.arguments) for call in parsed.tool_calls] == [{"script": script}] * 2
