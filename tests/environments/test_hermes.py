"""The Hermes form, whole and broken."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.parsers.hermes import parse


def call(name: str, arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_calls_reasoning_and_content_are_told_apart() -> None:
    parsed = parse(f"<think>\nhm\n</think>\n\nLooking.\n{call('a', {'x': 1})}\n{call('b', {})}")
    assert (parsed.reasoning, parsed.content, parsed.errors) == ("hm", "Looking.", [])
    assert [(c.name, json.loads(c.arguments)) for c in parsed.calls] == [("a", {"x": 1}), ("b", {})]


def test_text_without_a_call_is_content() -> None:
    assert parse("just text").content == "just text"
    assert parse("").content is None
    assert parse("opened in the prompt</think>done").reasoning == "opened in the prompt"


def test_a_closing_tag_inside_a_string_does_not_end_the_call() -> None:
    parsed = parse(call("write", {"text": "</tool_call><tool_call>"}) + "after")
    assert json.loads(parsed.calls[0].arguments) == {"text": "</tool_call><tool_call>"}
    assert parsed.content == "after"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('<tool_call>{"name": "a", "arguments": {"x": ', "not closed"),
        ('<tool_call>{"name": "a", "arguments": {}}', "not closed"),
        ("<tool_call>{'name': 'a'}</tool_call>", "not JSON"),
        ('<tool_call>{"arguments": {}}</tool_call>', "no name"),
        ('<tool_call>["a"]</tool_call>', "no name"),
        ('<tool_call>{"name": "a", "arguments": [1]}</tool_call>', "not an object"),
        ('<tool_call>{"name": "a"} more</tool_call>', "text after"),
        ("<tool_call>" + "[" * 100_000, "not closed"),
    ],
)
def test_a_broken_call_is_an_error_and_stays_in_the_text(text: str, reason: str) -> None:
    parsed = parse("so: " + text)
    assert parsed.calls == []
    assert [error.position for error in parsed.errors] == [4]
    assert reason in parsed.errors[0].reason
    assert parsed.content == ("so: " + text).strip()


def test_a_good_call_after_a_broken_one_is_read() -> None:
    parsed = parse("<tool_call>{oops}</tool_call>" + call("a", {}))
    assert ([c.name for c in parsed.calls], len(parsed.errors)) == (["a"], 1)


values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5)


@given(st.lists(st.tuples(st.text(min_size=1), st.dictionaries(st.text(), values, max_size=3)), max_size=3))
def test_what_a_template_writes_is_read_back(calls: list[tuple[str, dict[str, object]]]) -> None:
    parsed = parse("\n".join(call(name, arguments) for name, arguments in calls))
    assert [(c.name, json.loads(c.arguments)) for c in parsed.calls] == calls
    assert parsed.errors == []


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    parse(text)
    parse("<tool_call>" + text)
