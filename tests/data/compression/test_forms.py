"""Rows of both forms: what is counted, and how they look when turns are replaced."""

from __future__ import annotations

import json
import random

import pytest

from rl_cli.data.compression.conversation import Summary, Unreadable, compressed
from rl_cli.data.compression.forms import conversation_of
from rl_cli.data.compression.plan import Run
from rl_cli.data.compression.shortening import shorten, shorten_results
from rl_cli.data.trajectory import from_conversations, to_conversations
from tests.data.compression.kit import TOOL, chat_row, messages


def test_trj_06_both_forms_of_a_conversation_are_counted_the_same() -> None:
    given = messages(random.Random(1), [500, 800, 300])
    made = to_conversations(given, [TOOL])
    _, chat = conversation_of({"messages": given, "tools": [TOOL]})
    _, turns = conversation_of(vars(made))
    assert sorted([*chat.texts, *chat.beside]) == sorted([*turns.texts, *turns.beside])


def test_trj_06_the_same_turns_under_role_and_content_are_counted_the_same() -> None:
    made = to_conversations(messages(random.Random(1), [500, 800, 300]), [TOOL])
    names = {"system": "system", "human": "user", "gpt": "assistant", "tool": "tool"}
    renamed = [{"role": names[turn["from"]], "content": turn["value"]} for turn in made.conversations]
    for field in ("messages", "conversations"):
        _, other = conversation_of({field: renamed})
        _, turns = conversation_of({"conversations": made.conversations})
        assert (other.roles, other.texts, other.beside) == (turns.roles, turns.texts, turns.beside)


CALLS = [
    {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"name": "f"}}]},
    {"role": "assistant", "content": "I wait."},
]
SPOKEN = [{"from": "gpt", "value": "<tool_call>\n{}\n</tool_call>"}, {"from": "gpt", "value": "I wait."}]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({}, "neither"),
        ({"messages": [], "conversations": []}, "both"),
        ({"messages": []}, "no list of turns"),
        ({"messages": ["hi"]}, "no list of turns"),
        ({"conversations": [{"from": "bot", "value": "hi"}]}, "turn 1"),
        ({"conversations": [{"from": "human", "value": "hi"}, {"role": "gpt"}]}, "turn 2"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}], "tools": []}, "data convert"),
        ({"messages": [{"role": "tool", "content": "x", "tool_call_id": "a"}]}, "follows no call"),
        ({"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]}, "without a function"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": 7}, "tools"),
        ({"messages": [*CALLS, {"role": "tool", "content": "x", "tool_call_id": "a"}]}, "earlier turn"),
        ({"conversations": [*SPOKEN, {"from": "tool", "value": "x"}]}, "earlier turn"),
    ],
)
def test_what_is_no_conversation_is_told_why(row: dict[str, object], why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        conversation_of(row)


def test_a_run_becomes_one_marked_turn_in_either_form() -> None:
    row = chat_row(random.Random(2), [300] * 5)
    field, chat = conversation_of(row)
    made = compressed(row, field, chat, [Summary(Run(4, 8), "Two files <tool_call>.")], shortened=False)
    assert made["messages"][4] == {"role": "user", "content": "Two files <tool_call>."}
    assert made["messages"][:4] == row["messages"][:4]
    assert made["messages"][5:] == row["messages"][8:]
    assert made["marks"] == ["no_reasoning", "summary"]
    assert made["metadata"] == {"summary_turns": [4]}
    converted = vars(to_conversations(row["messages"], row["tools"]))
    field, turns = conversation_of(converted)
    made = compressed(
        converted, field, turns, [Summary(Run(4, 8), "Two files <tool_call>.")], shortened=False
    )
    assert made["conversations"][4] == {"from": "human", "value": "Two files &lt;tool_call>."}
    tools, back = from_conversations(made["conversations"])
    assert tools == [TOOL]
    assert [message["role"] for message in back].count("tool") == 3


def test_results_are_shortened_in_their_blocks() -> None:
    row = vars(to_conversations(messages(random.Random(3), [4_000]), [TOOL]))
    _, turns = conversation_of(row)
    at = turns.roles.index("tool")
    turns.set_results(at, shorten_results(turns.results(at), 400))
    assert turns.texts[at].count("<tool_response>") == turns.texts[at].count("</tool_response>") == 1
    assert json.loads(turns.results(at)[0])["exit_code"] == 0
    assert len(turns.texts[at]) < 700
    items, _ = turns.items([])
    from_conversations(items)


def test_the_longest_of_several_results_are_cut_to_one_length() -> None:
    cut = shorten_results(["a" * 100, "b" * 5_000, "c" * 2_000], 2_100)
    assert cut[0] == "a" * 100
    assert 900 < len(cut[1]) == len(cut[2]) < 1_200


def test_json_stays_json_as_long_as_its_frame_fits() -> None:
    content = json.dumps({"output": "x" * 9_000, "rows": ["y" * 3_000] * 3, "code": 1})
    short = json.loads(shorten(content, 1_500))
    assert short["code"] == 1
    assert len(short["rows"]) == 3
    assert len(shorten(json.dumps([1] * 9_000), 1_500)) < 1_700


def test_a_shortened_result_is_never_longer_than_it_was() -> None:
    for content in ("x" * 45, json.dumps({"output": "y" * 45}), json.dumps(["z" * 41] * 9)):
        assert all(len(shorten(content, keep)) <= len(content) for keep in range(len(content)))


def test_summaries_of_an_earlier_compression_are_still_found() -> None:
    row = chat_row(random.Random(2), [300] * 8)
    field, chat = conversation_of(row)
    once = compressed(
        row, field, chat, [Summary(Run(4, 6), "A."), Summary(Run(10, 14), "B.")], shortened=False
    )
    assert once["metadata"] == {"summary_turns": [4, 9]}
    field, chat = conversation_of(once)
    twice = compressed(once, field, chat, [Summary(Run(4, 7), "C.")], shortened=False)
    assert twice["metadata"] == {"summary_turns": [4, 7]}
    assert [twice["messages"][at]["content"] for at in (4, 7)] == ["C.", "B."]
