"""Conversations in every state become requests that the Messages API takes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.policies.anthropic.history import UNKNOWN_RESULT
from environments.policies.anthropic.request import request_of
from environments.policies.base import Sampling
from environments.policies.endpoints.endpoint import Endpoint
from rl_cli.core.messages import Message, assistant, system, tool_call, tool_result, user
from tests.wire import anthropic_wire
from tests.wire.anthropic_rules import THINKING, violations

ENDPOINT = Endpoint("anthropic", "claude-x")
GATEWAY = Endpoint("gateway", "m", "https://llm.example.com/anthropic")
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {}}},
    {"type": "function", "function": {"name": "start", "description": "", "parameters": {"type": "object"}}},
]


def request(
    messages: list[Message],
    tools: list[dict[str, Any]] = TOOLS,
    endpoint: Endpoint = ENDPOINT,
    sampling: Sampling | None = None,
) -> dict[str, Any]:
    """The body of the request, which the wire's rules have nothing against."""
    made = request_of(endpoint, messages, tools, sampling or Sampling())
    body = {k: v for k, v in made.items() if k != "extra_body"} | {"stream": True}
    body |= made.get("extra_body", {})
    came: dict[str, list[Any]] = {}
    for turn in body["messages"]:
        thoughts = [block for block in turn["content"] if block["type"] in THINKING]
        came |= {block["id"]: thoughts for block in turn["content"] if block["type"] == "tool_use"}
    assert violations(body, came, frozenset({"temperature", "top_p"})) == []
    return body


def said(body: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """Roles, and per block its text, call or answered id."""
    keys = {"text": "text", "tool_use": "name", "tool_result": "tool_use_id", "thinking": "thinking"}
    return [
        (turn["role"], [block[keys[block["type"]]] for block in turn["content"]]) for turn in body["messages"]
    ]


def thought(text: str, *calls: Any, origin: str = "anthropic/claude-x", says: str | None = None) -> Message:
    """An assistant message as the policy makes it of an answer with thinking."""
    message = assistant(says, list(calls))
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": text, "signature": anthropic_wire.sign(text)}
    ]
    if says:
        blocks.append({"type": "text", "text": says})
    blocks += [{"type": "tool_use", "id": call["id"]} for call in calls]
    message["provider_state"] = {"anthropic": {"origin": origin, "content": blocks}}
    return message


def test_the_system_prompt_and_the_tools_stand_outside_the_turns() -> None:
    body = request([system("You help."), system("Be brief."), user("hi")])
    assert [block["text"] for block in body["system"]] == ["You help.\n\nBe brief."]
    assert said(body) == [("user", ["hi"])]
    assert [tool["name"] for tool in body["tools"]] == ["look", "start"]
    assert all(tool["input_schema"]["type"] == "object" for tool in body["tools"])
    assert "description" not in body["tools"][1]
    assert "stop_sequences" not in body


def test_results_come_before_what_the_person_said_meanwhile() -> None:
    one, two = tool_call("a", "look", "{}"), tool_call("b", "start", '{"n": 1}')
    body = request(
        [user("go"), assistant(None, [one, two]), tool_result(two, "2"), user("wait"), tool_result(one, "1")]
    )
    assert said(body) == [("user", ["go"]), ("assistant", ["look", "start"]), ("user", ["a", "b", "wait"])]
    assert [block["content"] for block in body["messages"][2]["content"][:2]] == ["1", "2"]


def test_agt_24_neighbouring_messages_of_one_role_are_one_turn() -> None:
    call = tool_call("a", "look", "{}")
    body = request(
        [user("one"), user("two"), assistant("x"), assistant(None, [call]), tool_result(call, "r"), user("3")]
    )
    assert said(body) == [("user", ["one", "two"]), ("assistant", ["x", "look"]), ("user", ["a", "3"])]


def test_agt_03_a_call_without_result_gets_a_neutral_one() -> None:
    call = tool_call("a", "start", "{}")
    body = request([user("train"), assistant("I start it.", [call]), user("and?")])
    result, text = body["messages"][-1]["content"]
    assert (result["content"], result["is_error"], text["text"]) == (UNKNOWN_RESULT, True, "and?")
    assert "interrupt" not in UNKNOWN_RESULT
    assert "before repeating" in UNKNOWN_RESULT
    last = request([user("train"), assistant(None, [call])])
    assert [block["type"] for block in last["messages"][-1]["content"]] == ["tool_result"]


def test_results_that_nobody_asked_for_are_dropped() -> None:
    ghost = tool_call("ghost", "look", "{}")
    body = request([user("hi"), tool_result(ghost, "boo"), assistant("yes"), tool_result(ghost, "boo")])
    assert said(body) == [("user", ["hi"]), ("assistant", ["yes"]), ("user", ["Go on."])]


@pytest.mark.parametrize("n", [1, 3, 4, 8, 16, 40])
def test_agt_12_every_call_of_a_turn_has_its_own_result(n: int) -> None:
    calls = [tool_call(f"id{i}", "look", json.dumps({"i": i})) for i in range(n)]
    results = [tool_result(call, f"result {i}") for i, call in enumerate(calls)]
    body = request([user("go"), assistant(None, calls), *reversed(results)])
    blocks = body["messages"][2]["content"]
    assert [(b["tool_use_id"], b["content"]) for b in blocks] == [(f"id{i}", f"result {i}") for i in range(n)]


def test_ids_are_made_valid_and_unique_and_the_results_follow() -> None:
    odd = [tool_call("call:1", "look", "{}"), tool_call("", "look", "{}"), tool_call("call:1", "look", "{}")]
    later = tool_call("call_1", "look", "{}")
    body = request(
        [
            user("go"),
            assistant(None, odd),
            *[tool_result(call, str(i)) for i, call in enumerate(odd)],
            assistant(None, [later]),
            tool_result(later, "later"),
        ]
    )
    ids = [b["id"] for t in body["messages"] for b in t["content"] if b["type"] == "tool_use"]
    assert ids == ["call_1", "call", "call_1_2", "call_1_3"]
    results = [b for t in body["messages"] for b in t["content"] if b["type"] == "tool_result"]
    assert [(b["tool_use_id"], b["content"]) for b in results] == list(
        zip(ids, ["0", "1", "2", "later"], strict=True)
    )


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("null", {}),
        ("[1]", {}),
        ('{"a": ', {}),
        ('{"a": NaN}', {"a": "NaN"}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ("[" * 100_000, {}),
    ],
)
def test_arguments_are_sent_as_an_object_whatever_was_written(written: str, sent: dict[str, Any]) -> None:
    call = tool_call("a", "look", written)
    body = request([user("go"), assistant(None, [call]), tool_result(call, "r")])
    assert body["messages"][1]["content"][0]["input"] == sent


def test_invented_tool_names_are_made_such_as_the_api_takes() -> None:
    calls = [tool_call("a", "functions.look now", "{}"), tool_call("b", "", "{}")]
    body = request([user("go"), assistant(None, calls), *[tool_result(c, "r") for c in calls]])
    assert said(body)[1] == ("assistant", ["functions_look_now", "unknown"])


def test_failed_results_are_marked_and_empty_ones_have_no_content() -> None:
    calls = [tool_call(c, "look", "{}") for c in "abc"]
    contents = ['{"ok": false, "error": {}}', '{"ok": true}', " "]
    results = [tool_result(call, text) for call, text in zip(calls, contents, strict=True)]
    blocks = request([user("go"), assistant(None, calls), *results])["messages"][2]["content"]
    assert [block.get("is_error") for block in blocks] == [True, None, None]
    assert "content" not in blocks[2]


def test_nothing_empty_is_sent() -> None:
    body = request([system(" "), user(" \n"), user("hi"), assistant(""), assistant("  "), user("")])
    assert "system" not in body
    assert said(body) == [("user", ["hi"])]
    assert said(request([])) == [("user", ["Go on."])]
    assert said(request([assistant("I was saying")]))[0] == ("user", ["Go on."])


def test_text_with_half_a_surrogate_pair_can_be_sent() -> None:
    body = request([system("a\udc00"), user("b\ud83d"), assistant("c\ud83d\ude00"), user("d")])
    json.dumps(body, ensure_ascii=False).encode()
    assert said(body)[1] == ("assistant", ["c😀"])


def test_a_system_message_in_the_middle_has_no_more_rights_than_the_person() -> None:
    assert said(request([user("hi"), system("note")])) == [("user", ["hi", "note"])]


def test_calls_in_the_conversation_are_declared_where_no_tools_are_offered() -> None:
    call = tool_call("a", "look", "{}")
    body = request([user("go"), assistant(None, [call]), tool_result(call, "r"), user("sum up")], tools=[])
    assert [tool["name"] for tool in body["tools"]] == ["look"]
    assert body["tool_choice"] == {"type": "none"}
    assert "tools" not in request([user("hi")], tools=[])


def test_thinking_goes_back_unchanged_over_all_tool_rounds() -> None:
    first, second = tool_call("a", "look", "{}"), tool_call("b", "start", "{}")
    body = request(
        [
            user("go"),
            thought("hm", first, says="I look."),
            tool_result(first, "r"),
            thought("so", second),
            tool_result(second, "s"),
        ],
        endpoint=Endpoint("anthropic", "claude-x", thinking=2048),
    )
    assert said(body)[1] == ("assistant", ["hm", "I look.", "look"])
    assert said(body)[3] == ("assistant", ["so", "start"])
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}


def test_thinking_that_another_model_signed_stays_here() -> None:
    call = tool_call("a", "look", "{}")
    turns = [user("go"), thought("hm", call, origin="gateway/m"), tool_result(call, "r")]
    body = request(turns, endpoint=Endpoint("anthropic", "claude-x", thinking=2048))
    assert said(body)[1] == ("assistant", ["look"])
    assert "thinking" not in body  # the API refuses to think in tool rounds that began without


def test_thinking_of_a_message_that_was_changed_since_stays_here() -> None:
    edited = thought("hm", says="all of it")
    edited["content"] = "a part"
    assert said(request([user("go"), edited, user("on")]))[1] == ("assistant", ["a part"])
    masked = thought("the key is [redacted]", says="yes")
    assert said(request([user("go"), masked, user("on")]))[1] == ("assistant", ["yes"])


def test_unsigned_thinking_goes_back_only_to_servers_that_do_not_sign() -> None:
    for endpoint, kinds in ((ENDPOINT, ["text"]), (GATEWAY, ["thinking", "text"])):
        answer = thought("hm", says="yes", origin=endpoint.name)
        answer["provider_state"]["anthropic"]["content"][0]["signature"] = ""
        turns = request_of(endpoint, [user("go"), answer, user("on")], [], Sampling())["messages"]
        assert [block["type"] for block in turns[1]["content"]] == kinds


@pytest.mark.parametrize(
    ("knob", "thinking", "effort"),
    [
        (False, None, None),
        ("disabled", {"type": "disabled"}, None),
        (True, {"type": "adaptive", "display": "summarized"}, None),
        ("high", {"type": "adaptive", "display": "summarized"}, "high"),
        (4000, {"type": "enabled", "budget_tokens": 4000}, None),
        (1, {"type": "enabled", "budget_tokens": 1024}, None),
    ],
)
def test_one_setting_says_how_the_model_thinks(knob: Any, thinking: Any, effort: str | None) -> None:
    endpoint = Endpoint("gateway", "m", "http://127.0.0.1:1", thinking=knob)
    body = request([user("hi")], endpoint=endpoint, sampling=Sampling(temperature=0.5, max_tokens=1000))
    assert body.get("thinking") == thinking
    assert body.get("output_config") == ({"effort": effort} if effort else None)
    thinks = bool(thinking) and thinking["type"] != "disabled"
    assert body.get("temperature") == (None if thinks else 0.5)
    assert body["max_tokens"] == 1000 + ((thinking or {}).get("budget_tokens") or 0)


def test_anthropic_is_sent_no_sampling_settings_which_it_refuses() -> None:
    settings = Sampling(temperature=0.0, top_p=0.9, seed=1)
    assert not {"temperature", "top_p", "seed"} & set(request([user("hi")], sampling=settings))
    body = request([user("hi")], endpoint=GATEWAY, sampling=Sampling(temperature=0.0))
    assert body["temperature"] == 0.0
    assert "temperature" not in request([user("hi")], endpoint=GATEWAY)


def test_the_answer_may_be_as_long_as_was_said() -> None:
    assert request([user("hi")])["max_tokens"] == 8192
    limited = Endpoint("anthropic", "m", max_output_tokens=500)
    assert request([user("hi")], endpoint=limited)["max_tokens"] == 500
    assert request([user("hi")], endpoint=limited, sampling=Sampling(max_tokens=7))["max_tokens"] == 7


def test_the_prompt_up_to_a_breakpoint_stays_the_same_when_the_conversation_goes_on() -> None:
    def prefixes(body: dict[str, Any]) -> list[str]:
        """The text of the prompt up to each breakpoint."""
        found, text = [], ""
        for block in [*body["tools"], *body["system"], *(b for t in body["messages"] for b in t["content"])]:
            bare = {k: v for k, v in block.items() if k != "cache_control"}
            text += json.dumps(bare, sort_keys=True)
            if "cache_control" in block:
                found.append(text)
        return found

    messages: list[Message] = [system("You help."), user("go")]
    before: list[str] = []
    for n in range(5):
        marks = prefixes(request(messages))
        assert len(marks) <= 4
        if before:
            assert before[-1] in marks  # where the request before ended
            assert before[:2] == marks[:2]
        before = marks
        call = tool_call(f"c{n}", "look", "{}")
        messages += [assistant(None, [call]), tool_result(call, f"r{n}")]


texts = st.text(max_size=4) | st.sampled_from(["", " ", "\ud800", "x"])
ids = st.sampled_from(["a", "b", "c", "", "é", "a b"])
calls = st.builds(tool_call, ids, st.sampled_from(["look", "", "nö pe"]), texts | st.just('{"n": 1}'))


@st.composite
def messages(draw: st.DrawFn) -> Message:
    role = draw(st.sampled_from(["system", "user", "assistant", "assistant", "tool", "tool"]))
    if role == "assistant":
        made = draw(st.lists(calls, max_size=3))
        text = draw(st.none() | texts)
        return draw(st.sampled_from([assistant(text, made), thought("hm", *made, says=text)]))
    if role == "tool":
        return tool_result(draw(calls), draw(texts))
    return {"role": role, "content": draw(texts)}  # type: ignore[typeddict-item]


@given(st.lists(messages(), max_size=12), st.sampled_from([False, True, 2000]), st.booleans())
def test_any_conversation_becomes_a_request_that_the_api_takes(
    conversation: list[Message], thinking: Any, offered: bool
) -> None:
    endpoint = Endpoint("anthropic", "claude-x", thinking=thinking)
    body = request(conversation, TOOLS if offered else [], endpoint)
    json.dumps(body, ensure_ascii=False).encode()
    kept = {m["content"] for m in conversation if m["role"] == "user" and (m["content"] or "").strip()}
    sent = {b["text"] for t in body["messages"] for b in t["content"] if b["type"] == "text"}
    assert len(kept - sent - {"\ud800"}) == 0
