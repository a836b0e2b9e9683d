"""Whatever is given, there is a conversation or a reason: no other exception ends a stream of lines."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rl_cli.data.canonical import canonical
from rl_cli.data.errors import Unconvertible
from rl_cli.data.trajectory import from_conversations, to_conversations
from tests.data.test_trajectory import JSON, TEXT

WORDS = [
    *(
        "role",
        "content",
        "name",
        "arguments",
        "id",
        "type",
        "text",
        "from",
        "value",
        "at",
        "input",
        "refusal",
    ),
    *("tool_calls", "function", "function_call", "tool_call_id", "tool_use", "tool_result", "tool_use_id"),
    *("thinking", "reasoning", "reasoning_details", "image_url", "source", "finish_reason"),
]
VALUES = st.sampled_from(
    [*WORDS, "user", "assistant", "tool", "system", "developer", "human", "gpt", "a", "", None, True, 0, 1.5]
)
ANY = st.recursive(
    st.one_of(VALUES, TEXT),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=8,
)
ROLES = st.sampled_from(["user", "assistant", "tool", "function", "system", "developer"])
MESSAGE = st.builds(
    lambda role, rest: {**rest, "role": role}, ROLES, st.dictionaries(st.sampled_from(WORDS), ANY, max_size=4)
)
PIECE = st.one_of(
    TEXT,
    st.builds("<tool_call>{}</tool_call>".format, st.one_of(TEXT, JSON.map(json.dumps), ANY.map(json.dumps))),
    st.builds("<tool_response>{}</tool_response>".format, st.one_of(TEXT, ANY.map(json.dumps))),
    st.just('<tool_call>{"name": "a", "arguments": {}}</tool_call>'),
    st.just('<tool_response>{"tool_call_id": "c", "name": "a", "content": [1]}</tool_response>'),
    st.builds("<tools>{}</tools>".format, st.one_of(TEXT, ANY.map(json.dumps))),
)
TURN = st.fixed_dictionaries(
    {
        "from": st.sampled_from(["system", "human", "gpt", "tool"]),
        "value": st.lists(PIECE, max_size=3).map("".join),
    }
)


@given(st.one_of(ANY, st.lists(st.one_of(MESSAGE, ANY), min_size=1, max_size=4)), st.one_of(st.none(), ANY))
def test_any_messages(messages: Any, tools: Any) -> None:
    try:
        row = to_conversations(messages, tools)
    except Unconvertible:
        return
    back = from_conversations(row.conversations, row.system_messages)[1]
    assert back == canonical(messages).messages


@given(st.one_of(ANY, st.lists(TURN, max_size=4)), st.one_of(st.none(), ANY))
def test_any_conversations(conversations: Any, system_messages: Any) -> None:
    with suppress(Unconvertible):
        tools, messages = from_conversations(conversations, system_messages)
        row = to_conversations(messages, tools)
        assert [turn["from"] for turn in row.conversations[1:]] == [
            turn["from"] for turn in conversations if turn["from"] != "system"
        ]
