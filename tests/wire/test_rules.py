"""What the wire server refuses: requests that the real servers would refuse, too."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wire import anthropic_rules, anthropic_wire, openai_rules

USER = {"role": "user", "content": "hi"}


def call(call_id: str, arguments: Any = "{}", name: str = "f") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calls(*ids: str) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(i) for i in ids]}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "1"}


def tool(name: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **parameters}}}


def openai_says(messages: list[Any], **more: Any) -> list[str]:
    return openai_rules.violations({"model": "m", "messages": messages, **more})


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "system", "content": "s"}, USER, calls("a", "b"), result("b"), result("a"), USER],
        [USER, {**calls("a"), "content": "text"}, {**result("a"), "name": "f"}],
        [USER, calls("a"), result("a"), calls("b"), result("b"), {"role": "assistant", "content": ""}],
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    ],
)
def test_chat_completions_take_what_is_right(messages: list[Any]):
    assert openai_says(messages, tools=[tool("f")], temperature=1, max_completion_tokens=5, seed=3) == []


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([], "too short"),
        ([USER, calls("a")], "no tool message answers a"),
        ([USER, calls("a"), USER, result("a")], "no tool message answers a"),
        ([USER, result("a")], "without a preceding call"),
        ([USER, calls("a"), result("a"), result("a")], "without a preceding call"),
        ([USER, calls("a"), result("a"), calls("a"), result("a")], "used twice"),
        ([USER, calls("")], "an empty id"),
        ([USER, {"role": "assistant", "content": None}], "null without calls"),
        ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "too short"),
        (
            [USER, {**calls("a"), "tool_calls": [call("a", {})]}, result("a")],
            "arguments: expected str, got dict",
        ),
        ([USER, {**calls("a"), "tool_calls": [call("a", name="a b")]}, result("a")], "bad name"),
        ([USER, {**calls("a"), "reasoning": "hm"}, result("a")], "messages.1.reasoning: unknown key"),
        ([USER, {**calls("a"), "provider_state": {}}, result("a")], "messages.1.provider_state: unknown key"),
        ([{"role": "user", "content": None}], "messages.0.content: expected"),
        ([{"role": "robot", "content": "x"}], "messages.0.role"),
        ([{**USER, "name": "a b"}], "bad name"),
    ],
)
def test_chat_completions_refuse_what_is_wrong(messages: list[Any], complaint: str):
    assert any(complaint in line for line in openai_says(messages)), openai_says(messages)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"bogus": 1}, "bogus: unknown key"),
        ({"temperature": "1"}, "temperature: expected"),
        ({"temperature": 3}, "outside 0..2"),
        ({"max_tokens": 5, "max_completion_tokens": 5}, "cannot both be set"),
        ({"max_tokens": True}, "max_tokens: expected"),
        ({"stream_options": {"include_usage": True}}, "only allowed when stream"),
        ({"tools": []}, "too short"),
        ({"tools": [tool("a.b")]}, "bad name"),
        ({"tools": [tool("f"), tool("f")]}, "given twice"),
        ({"tools": [{**tool("f"), "risk": "read"}]}, "unknown key"),
        ({"tool_choice": "auto"}, "only allowed when tools"),
    ],
)
def test_chat_completions_refuse_wrong_settings(settings: dict[str, Any], complaint: str):
    assert any(complaint in line for line in openai_says([USER], **settings))


def test_extra_fields_can_be_allowed():
    body = {
        "model": "m",
        "messages": [USER, {"role": "assistant", "content": "x", "reasoning_content": "hm"}],
    }
    assert openai_rules.violations(body, frozenset({"reasoning_content"})) == []


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "f", "input": {}}


def uses(*ids: str, before: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"role": "assistant", "content": [*before, *map(use, ids)]}


def results(*ids: str, content: Any = "1") -> dict[str, Any]:
    blocks = [{"type": "tool_result", "tool_use_id": i, "content": content} for i in ids]
    return {"role": "user", "content": blocks}


def thinking(text: str = "hm", signed: str | None = None) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": anthropic_wire.sign(signed or text)}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


TOOL: dict[str, Any] = {"name": "f", "input_schema": {"type": "object", "properties": {}}}
THINKING = {"type": "enabled", "budget_tokens": 1024}


def anthropic_says(messages: list[Any], served: Any = None, **more: Any) -> list[str]:
    body = {"model": "m", "max_tokens": 4096, "messages": messages, "tools": [TOOL], **more}
    return anthropic_rules.violations(body, served or {})


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [USER, says("x"), USER],
        [USER, uses("a", "b"), results("b", "a"), says("x"), USER],
        [USER, uses("a", before=(thinking(),)), results("a")],
        [
            USER,
            uses("a"),
            {"role": "user", "content": [*results("a")["content"], {"type": "text", "text": "x"}]},
        ],
    ],
)
def test_messages_take_what_is_right(messages: list[Any]):
    cached = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    assert anthropic_says(messages, system=cached) == []


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([says("x"), USER], "must be the user's"),
        ([USER, USER], "must alternate"),
        ([USER, says("x")], "prefill"),
        ([{"role": "user", "content": ""}], "non-empty content"),
        ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "non-whitespace"),
        ([USER, says(""), USER], "non-whitespace"),
        ([USER, uses("a"), USER], "tool_result blocks answer []"),
        ([USER, uses("a", "b"), results("a")], "tool_result blocks answer ['a']"),
        ([USER, says("x"), results("a")], "tool_result blocks answer ['a']"),
        (
            [
                USER,
                uses("a"),
                {"role": "user", "content": [{"type": "text", "text": "x"}, *results("a")["content"]]},
            ],
            "must come first",
        ),
        ([USER, uses("a"), results("a"), uses("a"), results("a")], "must be unique"),
        ([USER, uses("a:b"), results("a:b")], "bad tool_use id"),
        (
            [USER, uses("a"), results("a", content=[{"type": "text", "text": ""}])],
            "non-empty in a tool_result",
        ),
        ([USER, uses("a", before=(thinking("changed", "hm"),)), results("a")], "invalid `signature`"),
        ([USER, uses("a", before=({**thinking(), "cache_control": None},)), results("a")], "unknown key"),
        ([USER, {"role": "assistant", "content": [thinking()]}, USER], "cannot be thinking"),
        (
            [USER, {"role": "assistant", "content": [{"type": "text", "text": "x", "id": 1}]}, USER],
            "unknown key",
        ),
        ([{"role": "tool", "content": "x"}], "role"),
        (
            [USER, {"role": "assistant", "content": [{**use("a"), "input": "{}"}]}, results("a")],
            "input: expected",
        ),
    ],
)
def test_messages_refuse_what_is_wrong(messages: list[Any], complaint: str):
    assert any(complaint in line for line in anthropic_says(messages)), anthropic_says(messages)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"seed": 1}, "seed: unknown key"),
        ({"max_tokens": 0}, "below 1"),
        ({"temperature": 1}, "temperature: unknown key"),
        ({"thinking": {"type": "enabled", "budget_tokens": 5000}}, "outside 1024..max_tokens"),
        ({"thinking": THINKING, "tool_choice": {"type": "any"}}, "forces tool use"),
        ({"tools": [{**TOOL, "name": "a.b"}]}, "bad name"),
        (
            {"tools": [{**TOOL, "cache_control": {"type": "ephemeral"}, "name": f"t{i}"} for i in range(5)]},
            "at most 4",
        ),
        ({"system": [{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}]}, "empty text"),
        ({"tools": [{**TOOL, "input_schema": {"properties": {}}}]}, "not of type object"),
    ],
)
def test_messages_refuse_wrong_settings(settings: dict[str, Any], complaint: str):
    assert any(complaint in line for line in anthropic_says([USER], **settings))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"temperature": 1.5}, "outside 0..1"),
        ({"temperature": 1, "top_p": 0.9}, "cannot both"),
        ({"thinking": THINKING, "temperature": 0.5}, "only be 1"),
    ],
)
def test_compatible_servers_still_take_a_temperature(settings: dict[str, Any], complaint: str):
    body = {"model": "m", "max_tokens": 4096, "messages": [USER], **settings}
    known = frozenset({"temperature", "top_p"})
    assert any(complaint in line for line in anthropic_rules.violations(body, {}, known))
    assert (
        anthropic_rules.violations(
            {**body, "thinking": {"type": "disabled"}} | {"temperature": 1, "top_p": None}, {}, known
        )
        == []
    )


def test_thinking_of_the_turn_that_goes_on_must_come_back():
    served = {"a": [thinking()]}
    kept, dropped = uses("a", before=(thinking(),)), uses("a")
    assert anthropic_says([USER, kept, results("a")], served, thinking=THINKING) == []
    [complaint] = anthropic_says([USER, dropped, results("a")], served, thinking=THINKING)
    assert "changed or left out" in complaint
    assert anthropic_says([USER, dropped, results("a"), says("x"), USER], served, thinking=THINKING) == []
