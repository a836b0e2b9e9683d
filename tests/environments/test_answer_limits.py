"""An answer costs no more than was reserved for it, whatever the server does."""

from __future__ import annotations

import itertools
import json
import tracemalloc
from typing import Any

import pytest

from environments.policies.base import Bounds, ContextOverflow, FinishReason, PolicyError
from environments.policies.endpoints import answer_limit
from environments.policies.endpoints.answer_limit import AnswerLimit
from environments.policies.endpoints.sse import EventStream
from environments.policies.endpoints.token_estimate import TextCount, text_tokens
from tests.environments.meters import LoggingMeter
from tests.environments.openai_talk import say
from tests.environments.test_untrusted_servers import APIS, ask
from tests.wire.server import Call, Raw, Refusal, Reply, Request, Tokens, WireServer

ENDLESS = Reply("word " * 20_000, piece=500, usage=Tokens(5, 1))
"""A server that keeps to no limit; it calls that one token."""


def sent_limit(request: Request) -> Any:
    return request.body.get("max_completion_tokens") or request.body.get("max_tokens")


@pytest.mark.parametrize("provider", ["openai", "mine"])
def test_what_is_reserved_is_what_the_endpoint_may_answer(provider):
    meter = LoggingMeter()
    with WireServer([Reply("ok")]) as server:
        say(server, provider=provider, bounds=Bounds(meter))
    assert sent_limit(server.requests[0]) == meter.log[0][3] == 8192
    assert server.violations == []


def test_a_configured_limit_is_reserved_and_sent():
    meter = LoggingMeter()
    with WireServer([Reply("ok")]) as server:
        say(server, bounds=Bounds(meter), max_output_tokens=300)
    assert sent_limit(server.requests[0]) == meter.log[0][3] == 300


def test_without_a_budget_nothing_limits_the_answer():
    with WireServer([ENDLESS]) as server:
        answer = say(server)
    assert sent_limit(server.requests[0]) is None
    assert answer.finish_reason is FinishReason.STOP
    assert len(answer.message["content"]) == 100_000


@pytest.mark.parametrize("api", APIS)
def test_a_stream_beyond_its_limit_is_cut_and_billed_by_estimate(api):
    meter = LoggingMeter()
    with WireServer([ENDLESS]) as server:
        answer = ask(api, server, meter, max_output_tokens=1000)
        assert sent_limit(server.requests[0]) == 1000
    assert answer.finish_reason is FinishReason.LENGTH
    settled = meter.log[1][1].output_tokens
    assert meter.kinds == ["reserve", "settle"]
    assert settled == pytest.approx(text_tokens(answer.message["content"] or ""), rel=0.01)
    assert 2 * 1000 < settled < 4 * 1000


def test_a_call_in_a_stream_that_is_cut_is_not_run():
    meter = LoggingMeter()
    call = Call("note_down", {"text": "word " * 20_000})
    with WireServer([Reply(calls=[call], piece=500)]) as server:
        answer = say(server, bounds=Bounds(meter), max_output_tokens=1000)
    assert "tool_calls" not in answer.message
    assert "was cut off" in answer.call_errors[0]
    assert meter.log[1][1].output_tokens > 2000


def test_a_server_that_takes_no_limit_still_answers_and_is_cut_all_the_same():
    def takes_no_limit(request: Request) -> Reply | Refusal:
        for field in ("max_tokens", "max_completion_tokens"):
            if field in request.body:
                return Refusal(400, f"Unknown parameter: '{field}'", param=field)
        return ENDLESS

    meter = LoggingMeter()
    with WireServer(takes_no_limit) as server:
        answer = say(server, bounds=Bounds(meter), max_output_tokens=1000)
    assert [sent_limit(request) for request in server.requests] == [1000, 1000, None]
    assert answer.finish_reason is FinishReason.LENGTH
    assert 2000 < meter.log[-1][1].output_tokens < 4000


VLLM = (
    "'max_tokens' or 'max_completion_tokens' is too large: {asked}. This model's maximum context length is "
    "4096 tokens and your request has 10 input tokens ({asked} > 4096 - 10)."
)
OPENAI = "max_tokens is too large: {asked}. This model supports at most 4096 completion tokens"


@pytest.mark.parametrize("words", [VLLM, OPENAI])
def test_a_limit_that_nobody_asked_for_shrinks_to_what_the_model_can(words):
    def small(request: Request) -> Reply | Refusal:
        asked = sent_limit(request)
        return Refusal(400, words.format(asked=asked)) if asked > 4086 else Reply("ok")

    meter = LoggingMeter()
    with WireServer(small) as server:
        assert say(server, bounds=Bounds(meter), provider="mine").message["content"] == "ok"
    assert [sent_limit(request) for request in server.requests] == [8192, 2048]
    assert meter.kinds == ["reserve", "release", "reserve", "settle"]
    assert [entry[3] for entry in meter.log if entry[0] == "reserve"] == [8192, 2048]


def test_a_conversation_that_is_really_too_long_is_told_as_such():
    refusal = Refusal(400, "This model's maximum context length is 4096 tokens. You sent 5000.")
    with WireServer([refusal]) as server, pytest.raises(ContextOverflow):
        say(server, bounds=Bounds(LoggingMeter()))


def test_an_endless_stream_ends_without_a_budget_too(monkeypatch):
    monkeypatch.setattr(answer_limit, "MOST_CHARACTERS", 50_000)
    with WireServer([ENDLESS]) as server:
        answer = say(server)
    assert answer.finish_reason is FinishReason.LENGTH
    assert 50_000 < len(answer.message["content"]) < 60_000


def test_the_ends_of_a_stream():
    assert AnswerLimit(None).is_passed(TextCount(characters=64_000_001))
    assert AnswerLimit(None, events=1_000_000).is_passed(TextCount())
    assert not AnswerLimit(100).is_passed(TextCount(characters=100 * 4))
    assert AnswerLimit(100).is_passed(TextCount(wide=1300, characters=1300))


@pytest.mark.parametrize("api", APIS)
def test_a_line_without_end_is_given_up(api):
    with WireServer([Raw(b"data: " + b"x" * 9_000_000)]) as server:
        with pytest.raises(PolicyError, match="an event of more than 8 MB"):
            ask(api, server)
        assert len(server.requests) == 1


@pytest.mark.parametrize("line", [b"x" * 1000, b"data: x\n" * 100])
def test_an_event_without_end_in_small_pieces_is_given_up(line):
    stream, pieces = EventStream(), itertools.repeat(line, 100_000)
    with pytest.raises(PolicyError, match="an event of more than"):
        list(map(stream.feed, pieces))


def test_a_long_line_in_tiny_pieces_is_joined_once():
    """Joining it at every piece would copy 200 GB."""
    stream = EventStream()
    text = json.dumps("x" * 600_000)
    stream.feed(b"data: ")
    for character in text.encode():
        stream.feed(bytes([character]))
    assert stream.feed(b"\n\n") == [text]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("api", APIS)
def test_an_answer_of_a_million_parts_is_given_up(api, stream):
    if api == "openai":
        part = {"tool_calls": [{"index": n} for n in range(200_000)]}
        body: Any = {"choices": [{"delta" if stream else "message": part, "finish_reason": "stop"}]}
    else:
        body = {"content": [{"type": "text", "text": "a"}] * 200_000, "stop_reason": "end_turn"}
    data = json.dumps(body).encode()
    raw = Raw(data, "application/json") if api == "anthropic" or not stream else Raw(b"data: %b\n\n" % data)
    with WireServer([raw]) as server, pytest.raises(PolicyError, match="more than 1000 parts"):
        ask(api, server, stream=stream)


def test_many_lines_of_json_without_data_are_no_long_event():
    stream, line = EventStream(), b'{"a": "' + b"x" * 100_000 + b'"}\n'
    assert sum(len(stream.feed(line)) for _ in range(100)) == 100


def test_comments_that_keep_a_connection_alive_are_not_kept():
    stream = EventStream()
    tracemalloc.start()
    for _ in range(2000):
        assert stream.feed(b": still working" + b"." * 10_000 + b"\n") == []
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000
    assert stream.feed(b'data: {"a": 1}\n\n') == ['{"a": 1}']


def test_counting_in_pieces_is_counting_the_whole():
    count = TextCount()
    for piece in ("Hello, ", "wörld", " 你好", "!"):
        count.add(piece)
    assert count.tokens == text_tokens("Hello, wörld 你好!")
