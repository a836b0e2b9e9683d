"""The policy for chat endpoints of OpenAI's form, through the real SDK, against a wire server."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from environments.agent_loop import StopReason
from environments.policies.base import (
    FinishReason,
    ReasoningDelta,
    TextDelta,
)
from tests.environments.openai_talk import ran, run_loop, say
from tests.wire import openai_wire
from tests.wire.server import Call, Raw, Reply, Tokens, WireServer


@pytest.mark.parametrize("stream", [True, False])
def test_a_conversation_with_thinking_and_calls(stream):
    replies = [
        Reply(text="I note.", reasoning="hm", calls=[Call("note_down", {"text": "a"}), Call("note_down")]),
        Reply(text="Done.", usage=Tokens(input=50, output=4, cached=40)),
    ]
    shown: list[Any] = []
    with WireServer(replies) as server:
        result = run_loop(server, stream=stream, on_delta=shown.append)
        assert server.violations == []
    assert (result.stop, result.final_text, sorted(ran)) == (StopReason.FINISHED, "Done.", ["a", "nothing"])
    assert result.messages[1]["reasoning"] == "hm"
    assert result.usage.cached_tokens == 40
    assert "".join(d.text for d in shown if isinstance(d, TextDelta)) == "I note.Done."
    assert "".join(d.text for d in shown if isinstance(d, ReasoningDelta)) == "hm"
    later = server.requests[1].body["messages"]
    assert [m["role"] for m in later] == ["user", "assistant", "tool", "tool"]
    assert "reasoning_content" not in later[1]
    assert later[2]["tool_call_id"] == later[1]["tool_calls"][0]["id"]


def test_text_is_shown_while_the_server_still_writes():
    shown_at: list[float] = []
    with WireServer([Reply(text="one two three", piece=4, gap=0.15)]) as server:
        say(server, on_delta=lambda delta: shown_at.append(time.monotonic()))
        ended = time.monotonic()
    assert len(shown_at) == 4
    assert ended - shown_at[0] > 0.3  # three more pieces and the end came after the first


@pytest.mark.parametrize("stream", [True, False])
def test_agt_07_empty_arguments_are_no_arguments(stream):
    written = ["", " ", "{}", "null"]
    with WireServer([Reply(calls=[Call("note_down", a) for a in written]), Reply(text="ok")]) as server:
        result = run_loop(server, stream=stream)
        assert server.violations == []
    assert ran == ["nothing"] * 4
    assert [record.ok for record in result.calls] == [True] * 4
    assert [record.arguments for record in result.calls] == written


def test_agt_07_null_arguments_are_no_arguments():
    call = {"index": 0, "id": "c1", "function": {"name": "note_down", "arguments": None}}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    with WireServer([Raw(openai_wire.event(chunk) + openai_wire.DONE), Reply(text="ok")]) as server:
        assert run_loop(server).calls[0].ok
        assert server.violations == []


def test_agt_08_a_call_cut_by_the_token_limit_is_recognised_and_not_run():
    cut = Reply(calls=[Call("note_down", '{"text": "half a')], finish="length")
    with WireServer([cut]) as server:
        result = run_loop(server)
    assert (result.stop, ran, len(server.requests)) == (StopReason.TOKEN_LIMIT, [], 1)
    assert result.call_errors == ["the call of note_down was cut off by the token limit"]
    assert "tool_calls" not in result.messages[-1]


def test_agt_10_parallel_calls_with_one_index_are_two_calls():
    pieces = [
        {"index": 0, "id": "c1", "function": {"name": "note_down", "arguments": '{"text": "a"}'}},
        {"index": 0, "id": "c2", "function": {"name": "note_", "arguments": ""}},
        {"index": 0, "function": {"name": "down", "arguments": '{"text":'}},
        {"index": 0, "function": {"arguments": ' "b"}'}},
    ]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = b"".join(map(openai_wire.event, chunks)) + openai_wire.DONE
    with WireServer([Raw(body, write_size=7), Reply(text="ok")]) as server:
        result = run_loop(server)
    assert (ran, [record.id for record in result.calls]) == (["a", "b"], ["c1", "c2"])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 8, 16])
def test_agt_11_agt_12_every_one_of_many_calls_is_run_and_answered_in_order(count):
    calls = [Call("note_down", {"text": str(n)}) for n in range(count)]
    for stream in (True, False):
        with WireServer([Reply(calls=calls), Reply(text="ok")]) as server:
            run_loop(server, stream=stream)
            assert server.violations == []
        sent = server.requests[1].body["messages"]
        asked = [call["id"] for call in sent[1]["tool_calls"]]
        results = [(m["tool_call_id"], json.loads(m["content"])["noted"]) for m in sent[2:]]
        assert len(set(asked)) == count
        assert results == [(call_id, str(n)) for n, call_id in enumerate(asked)]


@pytest.mark.parametrize("asked", [True, False])
def test_a_server_may_stream_or_not_whatever_it_is_asked(asked):
    reply = Reply(text="hello", usage=Tokens(3, 2))
    if asked:
        whole = json.dumps(openai_wire.body(reply, {"model": "m", "messages": []}, 0)).encode()
        answer = Raw(whole, content_type="application/json")
    else:
        answer = Raw(b"".join(openai_wire.events(reply, {"model": "m"}, 0)))
    with WireServer([answer]) as server:
        assert say(server, stream=asked).message["content"] == "hello"


def test_calls_in_text_are_calls_and_not_shown_as_text():
    text = 'I note.\n<tool_call>\n{"name": "note_down", "arguments": {"text": "a"}}\n</tool_call>'
    shown: list[Any] = []
    with WireServer([Reply(text=text, finish="stop"), Reply(text="ok")]) as server:
        result = run_loop(server, on_delta=shown.append)
        assert server.violations == []
    assert (ran, result.messages[1]["content"]) == (["a"], "I note.")
    assert "tool_call" not in "".join(d.text for d in shown)


@pytest.mark.parametrize("finish", [None, "stop", "length", "content_filter"])
def test_empty_replies_are_replies(finish):
    with WireServer([Reply(text="", finish=finish)]) as server:
        completion = say(server)
    assert completion.message == {"role": "assistant", "content": None}
    expected = FinishReason(finish or "stop")
    assert completion.finish_reason is expected
