"""Which result answers which call, what counts as reasoning, what is marked."""

from __future__ import annotations

import time
from typing import Any

import pytest

from rl_cli.data.canonical import canonical
from rl_cli.data.errors import Unconvertible
from rl_cli.data.trajectory import from_conversations, to_conversations

USER = {"role": "user", "content": "go"}
DONE = {"role": "assistant", "content": "done"}


def called(*calls: tuple[str | None, str], **more: Any) -> dict[str, Any]:
    listed = [{"id": call_id, "function": {"name": name, "arguments": "{}"}} for call_id, name in calls]
    return {"role": "assistant", "content": None, "tool_calls": listed, **more}


def result(call_id: str | None, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def answers(*messages: dict[str, Any]) -> list[tuple[int, str, str, str | None]]:
    """Of each result: its place, the call's id and name, its text."""
    found = canonical([USER, *messages]).messages
    return [
        (at, m["tool_call_id"], m["name"], m["content"]) for at, m in enumerate(found) if m["role"] == "tool"
    ]


def test_a_late_result_moves_to_its_call() -> None:
    found = answers(
        called(("a", "read"), ("b", "run")), result("b"), USER, called(("c", "run")), result("a"), result("c")
    )
    assert found == [(2, "b", "run", "ok"), (3, "a", "read", "ok"), (6, "c", "run", "ok")]


def test_ids_that_are_used_again_belong_to_the_latest_turn() -> None:
    found = answers(
        called(("call_0", "read")), result("call_0", 1), called(("call_0", "run")), result("call_0", 2)
    )
    assert found == [(2, "call_0", "read", "1"), (4, "call_0", "run", "2")]


def test_two_calls_with_one_id_are_answered_in_order() -> None:
    found = answers(called(("x", "read"), ("x", "run")), result("x", "first"), result("x", "second"))
    assert found == [(2, "x", "read", "first"), (3, "x", "run", "second")]


def test_a_second_result_is_left_out_and_marked() -> None:
    messages = [USER, called(("a", "read")), result("a", "first"), result("a", "second"), DONE]
    found = canonical(messages)
    assert [m["content"] for m in found.messages if m["role"] == "tool"] == ["first"]
    assert "second_result_dropped" in found.marks


def test_calls_and_results_without_ids_go_by_name_then_by_order() -> None:
    bare = called((None, "read"), (None, "run"), (None, "read"))
    found = answers(bare, result(None, 1, name="run"), result(None, 2), result(None, 3))
    assert found == [(2, "call_2", "run", "1"), (3, "call_1", "read", "2"), (4, "call_3", "read", "3")]


def test_a_result_without_an_id_goes_to_the_call_of_its_name_whatever_their_ids() -> None:
    calls = called(("x", "read"), ("x", "run"))
    for call_id in (None, "x"):
        messages = [USER, calls, result(call_id, 1, name="run"), result("x", 2)]
        assert answers(*messages[1:]) == [(2, "x", "run", "1"), (3, "x", "read", "2")]
        row = to_conversations(messages)
        back = from_conversations(row.conversations)[1]
        assert back == canonical(messages).messages == canonical(back).messages


def test_many_calls_of_one_turn_take_linear_time() -> None:
    def seconds(count: int) -> float:
        ids = [f"c{number}" for number in range(count)]
        told = [called(*((i, "read") for i in ids)), *(result(i) for i in reversed(ids))]
        bare = [called(*((None, "read") for _ in ids)), *(result(None) for _ in ids)]
        begin = time.process_time()
        canonical([USER, *told, *bare])
        return time.process_time() - begin

    assert seconds(16_000) < 64 * min(seconds(1000) for _ in range(3))


def test_a_result_without_an_id_is_never_guessed() -> None:
    with pytest.raises(Unconvertible, match="one of 2"):
        canonical([USER, called(("a", "read"), ("b", "run")), result(None)])
    assert answers(called(("a", "read")), result(None)) == [(2, "a", "read", "ok")]


def test_a_result_before_its_call_is_refused() -> None:
    with pytest.raises(Unconvertible, match="'a', which was not made before"):
        canonical([USER, result("a"), called(("a", "read"))])


def test_numbers_are_ids_too() -> None:
    calls = called((None, "read"), (None, "run"))
    for number, call in enumerate(calls["tool_calls"], 1):
        call["id"] = number
    assert answers(calls, result(2, "two"), result(1, "one")) == [  # type: ignore[arg-type]
        (2, "2", "run", "two"),
        (3, "1", "read", "one"),
    ]


@pytest.mark.parametrize("call_id", [1.5, True, ["a"], {"id": "a"}])
def test_other_values_are_no_ids(call_id: Any) -> None:
    for messages in ([called((call_id, "read"))], [called(("a", "read")), result(call_id)]):
        with pytest.raises(Unconvertible, match="neither a text nor a whole number"):
            canonical([USER, *messages])


@pytest.mark.parametrize("name", ["arguments", "args", "input", "parameters"])
def test_arguments_by_any_usual_name_are_kept(name: str) -> None:
    calls = [{"id": "a", "name": "read", name: {"path": "x"}}, {"id": "b", "name": "run"}]
    found = canonical([USER, {"role": "assistant", "tool_calls": calls}]).messages[1]["tool_calls"]
    assert [call["function"]["arguments"] for call in found] == ['{"path": "x"}', "{}"]


def test_a_call_that_is_given_twice_is_one() -> None:
    """As LangChain keeps Anthropic's answers: the blocks, and the calls that it read in them."""
    blocks = [{"type": "text", "text": "Look."}, {"type": "tool_use", "id": "a", "name": "read", "input": {}}]
    called_twice = {
        "role": "assistant",
        "content": blocks,
        "tool_calls": [{"id": "a", "name": "read", "args": {}}],
    }
    found = canonical([USER, called_twice]).messages[1]
    assert (found["content"], [call["id"] for call in found["tool_calls"]]) == ("Look.", ["a"])


def test_the_older_form_of_calls() -> None:
    older = {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": "{}"}}
    assert answers(older, {"role": "function", "name": "read", "content": "x"}) == [
        (2, "call_1", "read", "x")
    ]


@pytest.mark.parametrize(
    ("message", "reasoning", "content"),
    [
        ({"content": "<think>a</think><think>b</think>c"}, "a\n\nb", "c"),
        ({"content": "c <REASONING_SCRATCHPAD>a</REASONING_SCRATCHPAD>d"}, "a", "c d"),
        ({"content": "Write <think> and </think>."}, None, "Write <think> and </think>."),
        ({"content": "a\n</think>\n\nc"}, "a", "c"),
        ({"content": "a\n</think>\n\nc", "reasoning": "b"}, "b", "a\n</think>\n\nc"),
        ({"content": "a\nSo 3.</think>The answer is 3."}, "a\nSo 3.", "The answer is 3."),
        ({"content": "</think>\na[/THINK]c"}, "a", "c"),
        ({"content": " [THINK]a[/THINK]c"}, "a", "c"),
        ({"content": "<thinking>\na\n</thinking>\nc"}, "a", "c"),
        ({"content": "<seed:think>a</seed:think>c"}, "a", "c"),
        ({"content": "◁think▷a◁/think▷c"}, "a", "c"),
        ({"content": "<thought>a</think></thought>c"}, "a</think>", "c"),
        ({"content": "<Think>a</THINK>c"}, "a", "c"),
        ({"content": "<think>a </Think> b</think>c"}, "a </Think> b", "c"),
        ({"content": "<reasoning>\na\n</reasoning>\n<scratch_pad>b</Scratch_Pad>\nc"}, "a\n\nb", "c"),
        ({"content": "c <reasoning_scratchpad>a</REASONING_SCRATCHPAD>d"}, "a", "c d"),
        ({"content": "<mm:think>a</mm:think>c"}, "a", "c"),
        ({"content": "<longcat_think>a</longcat_think>c"}, "a", "c"),
        ({"content": "<|channel>thought\na<channel|>c"}, "a", "c"),
        ({"content": "a\n</Reasoning>\nc"}, "a", "c"),
        ({"content": "</think> </think>\n</think>a"}, None, "a"),
        ({"content": "<reasoning>a"}, "a", ""),
        ({"content": "c", "reasoning_content": "<Thought>a</Thought>"}, "a", "c"),
        ({"content": "```xml\n<reasoning>x</reasoning>\n```"}, None, "```xml\n<reasoning>x</reasoning>\n```"),
        ({"content": "<Reasoning mode='x'>a</reasoning>c"}, "a", "c"),
        ({"content": "<analysis>b</analysis>"}, None, "<analysis>b</analysis>"),
        ({"content": "<think>a", "reasoning": ""}, "a", ""),
        ({"content": "c", "reasoning": "<think>\na\n</think>", "reasoning_content": "a"}, "a", "c"),
        (
            {"content": "c", "reasoning_details": [{"text": "a "}, {"summary": "b"}, {"data": "x"}]},
            "a b",
            "c",
        ),
        (
            {"content": "c", "reasoning": "a b", "reasoning_details": [{"text": "a "}, {"text": "b"}]},
            "a b",
            "c",
        ),
        ({"content": "c", "reasoning": "<think><think>a"}, "<think><think>a", "c"),
        ({"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "c"}]}, "a", "c"),
        ({"content": None, "refusal": "no"}, None, "no"),
        ({"content": []}, None, ""),
        ({"content": None, "audio": {"id": "x", "data": "AAAA", "transcript": "c"}}, None, "c"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": "a", "signature": "x"},
                    {"type": "server_tool_use", "name": "web"},
                    {"type": "text", "text": "c"},
                ]
            },
            "a",
            '{"type": "server_tool_use", "name": "web"}\nc',
        ),
    ],
)
def test_what_is_reasoning(message: dict[str, Any], reasoning: str | None, content: str) -> None:
    found = canonical([USER, {"role": "assistant", **message}]).messages[1]
    assert (found.get("reasoning"), found["content"]) == (reasoning, content)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        (["a", {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "data:x"}}], "[image]"),
        (
            [{"type": "image", "source": {}, "alt": "a cat"}, {"type": "input_audio"}],
            "[image: a cat]\n[audio]",
        ),
        ({"content": [1], "text_summary": "a chart"}, "a chart"),
        ({"n": 1, "text": "é"}, '{"n": 1, "text": "é"}'),
        (
            [{"type": "file", "file": {"file_data": "data:x"}}, {"type": "image", "source": {}}],
            "[file]\n[image]",
        ),
        ([{"type": "file", "name": "a.txt"}], '[{"type": "file", "name": "a.txt"}]'),
        (
            [
                {"type": "text", "text": "a"},
                {"type": "new", "n": 1},
                {"type": "image_url", "image_url": "data:x"},
            ],
            'a\n{"type": "new", "n": 1}\n[image]',
        ),
        (["a", {"n": 1}], '["a", {"n": 1}]'),
        ([{"type": "text", "text": "a"}, 1], '[{"type": "text", "text": "a"}, 1]'),
        ([], "[]"),
        ([{"type": "input_audio", "input_audio": {"data": "x"}, "transcript": "hi"}], "[audio: hi]"),
        ([{"type": "unheard_of", "n": 1}], '[{"type": "unheard_of", "n": 1}]'),
        ({"loss": float("nan")}, '{"loss": NaN}'),
        ("caf\udce9 \ud83c\udf78", "caf\ufffd 🍸"),
    ],
)
def test_contents_become_text(content: Any, text: str) -> None:
    assert answers(called(("a", "read")), result("a", content))[0][3] == text


@pytest.mark.parametrize(
    ("arguments", "text", "valid"),
    [
        (None, "{}", True),
        (" ", "{}", True),
        ({"n": 1}, '{"n": 1}', True),
        ('{"n":1.50,"n":2e3}\n', '{"n":1.50,"n":2e3}\n', True),
        ('{"n": ' + "9" * 4000 + "}", '{"n": ' + "9" * 4000 + "}", True),
        ('{"a": "\\ud83d\\u003cthink>\\u003cb>"}', '{"a": "\\ufffd<think>\\u003cb>"}', True),
        ('{"a": "\\u003cthink>', '{"a": "\\u003cthink>', False),
        ([], "[]", False),
        ("null", "{}", True),
        ('"{}"', '"{}"', False),
        ({"n": float("nan")}, '{"n": NaN}', False),
        ('{"n": ' + "9" * 5000 + "}", '{"n": ' + "9" * 5000 + "}", False),
    ],
)
def test_arguments_are_kept_and_told_when_they_are_no_object(arguments: Any, text: str, valid: bool) -> None:
    call = {"id": "a", "function": {"name": "read", "arguments": arguments}}
    found = canonical([USER, {"role": "assistant", "tool_calls": [call]}])
    assert found.messages[1]["tool_calls"][0]["function"]["arguments"] == text
    assert ("invalid_arguments" not in found.marks) == valid


@pytest.mark.parametrize(
    ("last", "mark"),
    [
        ([USER], "no_answer"),
        ([called(("a", "read"))], "unanswered_call"),
        ([{"role": "assistant", "content": " "}], "empty_answer"),
        ([{**DONE, "finish_reason": "length"}], "cut_off"),
        ([{**DONE, "finish_reason": None}], "cut_off"),
        ([{"role": "assistant", "content": "<think>hm"}], "unclosed_reasoning"),
        ([{"role": "assistant", "content": '<tool_call>{"name": "read"}</tool_call>'}], "call_in_text"),
    ],
)
def test_what_is_not_completed_says_so(last: list[dict[str, Any]], mark: str) -> None:
    row = to_conversations([USER, DONE, *last])
    assert not row.completed
    assert mark in row.marks


@pytest.mark.parametrize(
    "content",
    [
        "3. <think>Or 4?</think>",
        "In <SCRATCHPAD> I add.",
        "Use [THINK] here.",
        "The tag `</think>` ends it.",
        "It is ◁/think▷ there.",
    ],
)
def test_thinking_that_is_not_taken_as_reasoning_is_marked(content: str) -> None:
    row = to_conversations([USER, {"role": "assistant", "content": content}])
    assert row.marks == ["thinking_in_text"]
    assert row.completed


@pytest.mark.parametrize("tools", [None, [], ["run"]])
def test_a_call_of_a_tool_that_is_not_listed_is_marked(tools: list[str] | None) -> None:
    assert to_conversations([USER, called(("a", "read")), result("a"), DONE], tools).marks == ["unknown_tool"]


def test_what_is_completed_and_what_is_only_marked() -> None:
    broken = called(("a", "read"))
    broken["tool_calls"][0]["function"]["arguments"] = '{"a": 1}{"a": 1}'
    row = to_conversations([USER, broken, result("a"), {**DONE, "finish_reason": "stop"}], ["run"])
    assert row.completed
    assert row.marks == ["invalid_arguments", "unknown_tool"]


def test_a_result_where_no_call_was_made_is_told_of() -> None:
    with pytest.raises(Unconvertible, match="was not made before"):
        canonical([{"role": "user", "content": "hi"}, {"role": "tool", "content": "x"}])
