"""Conversations that others wrote in the from/value form are read, or refused; nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest

from rl_cli.core.messages import assistant, system, tool_call, user
from rl_cli.data.errors import Unconvertible
from rl_cli.data.trajectory import from_conversations, to_conversations


def turn(role: str, value: str) -> dict[str, str]:
    return {"from": role, "value": value}


def call(name: str = "read", more: str = "") -> str:
    return f'<tool_call>\n{{"name": "{name}", "arguments": {{}}{more}}}\n</tool_call>'


def response(name: str = "read", more: str = '"tool_call_id": "a", ') -> str:
    return f'<tool_response>{{{more}"name": "{name}", "content": "x"}}</tool_response>'


def test_schemas_in_a_list_or_one_on_each_line() -> None:
    schema = {"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}
    lines = '{"name": "read", "parameters": {"type": "object"}}\n"run"'
    listed = to_conversations([user("hi")], [schema, "run"]).conversations[0]["value"]
    told = "Signatures stand within <tools> </tools>. Here they are: <tools>\n{}\n</tools> Good luck."
    for value in (listed, told.format(lines)):
        tools, messages = from_conversations([turn("system", value), turn("human", "hi")])
        assert tools == [schema, {"type": "function", "function": {"name": "run"}}]
        assert messages == [user("hi")]


def test_a_system_turn_without_tools_is_a_system_message() -> None:
    assert from_conversations([turn("system", "Be brief.")]) == ([], [system("Be brief.")])


def test_ids_that_nothing_tells_are_made() -> None:
    value = f"On it.\n{call()}\n{call('run')}"
    _, messages = from_conversations([turn("gpt", value)])
    assert messages == [
        assistant("On it.", [tool_call("call_0_1", "read", "{}"), tool_call("call_0_2", "run", "{}")])
    ]
    _, messages = from_conversations([turn("gpt", call()), turn("tool", response(more=""))])
    assert messages[1]["tool_call_id"] == messages[0]["tool_calls"][0]["id"]


def test_agt_26_a_call_in_thinking_is_no_call() -> None:
    _, messages = from_conversations([turn("gpt", f"<think>I will {call('plan')}</think>{call()}")])
    assert [made["function"]["name"] for made in messages[0]["tool_calls"]] == ["read"]


@pytest.mark.parametrize("tag", ["think", "Think", "thinking", "reasoning", "REASONING_SCRATCHPAD"])
def test_thinking_of_others_is_reasoning(tag: str) -> None:
    _, messages = from_conversations([turn("gpt", f"<{tag}>\nlook\n</{tag.lower()}>\n\n{call()}")])
    assert messages[0]["reasoning"] == "look"
    assert [made["function"]["name"] for made in messages[0]["tool_calls"]] == ["read"]


def test_agt_28_closing_tags_in_arguments_do_not_end_them() -> None:
    arguments = '{"command": "grep \'</tool_call>\' log | sed s/<think>//", "n": 1.50}'
    source = [user("hi"), assistant(None, [tool_call("a", "run", arguments)])]
    row = to_conversations(source)
    assert from_conversations(row.conversations)[1] == source


@pytest.mark.parametrize(
    "turns",
    [
        "hi",
        [],
        [1],
        [{"from": "narrator", "value": "x"}],
        [{"from": "human", "value": None}],
        [turn("system", "<tools>[{}]</tools>")],
        [turn("system", "<tools>" + "[" * 5000)],
        [turn("gpt", "<think>never closed")],
        [turn("gpt", f"{call()} and then")],
        [turn("gpt", "<tool_call>{}</tool_call>")],
        [turn("gpt", "<tool_call>not JSON</tool_call>")],
        [turn("gpt", '<tool_call>{"name": "x", "arguments": {"n": NaN}}</tool_call>')],
        [turn("gpt", '<tool_call>{"name": "x", "name": "y", "arguments": {}}</tool_call>')],
        [turn("gpt", '<tool_call>{"name": "x", "arguments": ' + '{"a":' * 5000 + "</tool_call>")],
        [turn("gpt", '<tool_call>{"name": "x"}')],
        [turn("gpt", "</tool_call>")],
        [turn("tool", response())],
        [turn("human", "hi"), turn("tool", response())],
        [turn("gpt", "hi"), turn("tool", response())],
        [turn("gpt", call()), turn("tool", response("run"))],
        [turn("gpt", call() + call()), turn("tool", response())],
        [turn("gpt", call()), turn("tool", "plain text")],
        [turn("gpt", "hi"), turn("tool", "")],
        [turn("gpt", call(more=', "id": "b"')), turn("tool", response())],
        [turn("gpt", call(more=', "id": "a"')), turn("tool", response() * 2)],
    ],
)
def test_what_is_not_quite_the_form_is_refused(turns: Any) -> None:
    with pytest.raises(Unconvertible):
        from_conversations(turns)


@pytest.mark.parametrize("kept", [{}, [1], [{"at": "0", "content": "x"}], [{"at": 0}]])
def test_system_messages_that_are_none_are_refused(kept: Any) -> None:
    with pytest.raises(Unconvertible):
        from_conversations([turn("human", "hi")], kept)


def test_an_unknown_role_is_named_with_the_known_ones() -> None:
    with pytest.raises(Unconvertible, match="unknown role 'user' of a turn; known: system, human, gpt, tool"):
        from_conversations([turn("user", "hi")])
