"""Calls without marks in a text: only what names an offered tool is one."""

from __future__ import annotations

import pytest

from environments.parsers.families import FAMILIES
from tests.environments.parsers.replay import splits, stream

TOOLS = [{"type": "function", "function": {"name": "get", "parameters": {}}}]
CALLS = {
    "llama": '{{"name": "{}", "parameters": {{"a": {{"b": 1}}}}}}',
    "xlam": '[{{"name": "{}", "arguments": {{"a": 1}}}}]',
    "llama_pythonic": "[{}(a=[1, 2])]",
}


@pytest.mark.parametrize("family", CALLS)
@pytest.mark.parametrize("form", ["See: {}", "```json\n{}\n```", "As a list:\n\n{} - so it goes"])
def test_in_a_text_or_a_fence_only_offered_tools_are_called(family: str, form: str) -> None:
    for name, called in (("get", 1), ("other", 0)):
        text = form.format(CALLS[family].format(name))
        parsed = FAMILIES[family].parse(text, TOOLS)
        assert (len(parsed.tool_calls), parsed.errors) == (called, [])
        assert called or parsed.content == text
        assert all(stream(FAMILIES[family], TOOLS, pieces) == parsed for pieces in splits(text))
        assert len(FAMILIES[family].parse(text).tool_calls) == 1


@pytest.mark.parametrize("family", CALLS)
def test_a_turn_that_is_nothing_but_a_call_may_name_any_tool(family: str) -> None:
    text = f"<think>hm</think>\n{CALLS[family].format('other')}"
    assert [call.name for call in FAMILIES[family].parse(text, TOOLS).tool_calls] == ["other"]


def test_arguments_before_the_name_and_a_call_inside_a_foreign_one() -> None:
    inner = CALLS["llama"].format("get")
    for text in (
        f'See {{"parameters": {{"a": {inner}}}, "name": "other"}}',
        f'See {{"name": "other", "parameters": {{"a": {inner}}}}}',
    ):
        parsed = FAMILIES["llama"].parse(text, TOOLS)
        assert (parsed.tool_calls, parsed.content, parsed.errors) == ([], text, [])


def test_marks_call_tools_that_were_not_offered_too() -> None:
    text = f"See <|python_tag|>{CALLS['llama'].format('other')}"
    assert len(FAMILIES["llama"].parse(text, TOOLS).tool_calls) == 1


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("llama_pythonic", "x = a[get(b=2)]"),
        ("llama_pythonic", "rows_[get(b=2)]"),
        ("xlam", 'a[{"name": "get", "arguments": {}}]'),
    ],
)
def test_an_index_is_no_call(family: str, text: str) -> None:
    for tools in ([], TOOLS):
        parsed = FAMILIES[family].parse(text, tools)
        assert (parsed.tool_calls, parsed.content, parsed.errors) == ([], text, [])
        assert all(stream(FAMILIES[family], tools, pieces) == parsed for pieces in splits(text))
