"""The policy for chat endpoints of OpenAI's form, through the real SDK and a server of the wire format."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from environments import agent_loop
from environments.agent_loop import Limits, StopReason
from environments.policies.attempts import WaitPolicy
from environments.policies.base import (
    Bounds,
    BudgetExhausted,
    ContextOverflow,
    FinishReason,
    PolicyError,
    ReasoningDelta,
    Retrying,
    Sampling,
    TextDelta,
)
from environments.policies.endpoint import Endpoint
from environments.policies.openai_chat import OpenAIChatPolicy, OpenAIChatSession
from environments.policies.openai_request import dialect_of, request_of
from rl_cli.core.messages import Message, assistant, system, tool_call, tool_result, user
from tests.environments.meters import LoggingMeter
from tests.wire import openai_wire, refusals
from tests.wire.server import Call, Fault, Raw, Refusal, Reply, Tokens, WireServer
from tools.dispatcher import CallContext, tool, tool_schemas

QUICK = WaitPolicy(attempts=4, base=0.01, cap=0.02)
ran: list[str] = []


@tool(toolset="openai_tests", risk="read")
def note_down(text: str = "nothing") -> dict[str, str]:
    """Notes a text down.

    Args:
        text: What to note.
    """
    ran.append(text)
    return {"noted": text}


TOOLS = tool_schemas(["openai_tests"])


def endpoint(server: WireServer, provider: str = "openai", **settings: Any) -> Endpoint:
    return Endpoint(provider, "test-model", server.openai_url, "sk-the-key-of-this-test", **settings)


def talk(
    server: WireServer,
    conversation: Callable[[OpenAIChatSession], Awaitable[Any]],
    *,
    sampling: Sampling | None = None,
    on_delta: Any = None,
    bounds: Bounds | None = None,
    tools: list[dict[str, Any]] = TOOLS,
    wait: WaitPolicy = QUICK,
    **settings: Any,
) -> Any:
    async def main() -> Any:
        policy = OpenAIChatPolicy(endpoint(server, **settings), wait)
        async with policy.open("rollout-1", tools, sampling or Sampling(), on_delta, bounds) as session:
            return await conversation(session)

    return asyncio.run(main())


def say(server: WireServer, *messages: Message, **settings: Any) -> Any:
    return talk(server, lambda session: session.complete(list(messages) or [user("hi")]), **settings)


def run_loop(server: WireServer, text: str = "go", **settings: Any) -> agent_loop.LoopResult:
    ran.clear()
    context = CallContext("cli", "test", ("openai_tests",))
    limits = Limits(max_turns=8)
    result: agent_loop.LoopResult = talk(
        server, lambda session: agent_loop.run(session, [user(text)], context, limits), **settings
    )
    return result


def wait_for_request(server: WireServer) -> None:
    while not server.requests:
        time.sleep(0.01)


def roles(request: Any) -> list[str]:
    return [message["role"] for message in request.body["messages"]]


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


@pytest.mark.parametrize("who", refusals.OVERFLOWS)
def test_agt_13_an_overflow_is_told_and_changes_no_limit(who):
    async def main(server: WireServer) -> None:
        policy = OpenAIChatPolicy(endpoint(server, window=1_000_000), QUICK)
        async with policy.open("r", [], Sampling()) as session:
            with pytest.raises(ContextOverflow):
                await session.complete([user("a long story")])
            assert policy.window == 1_000_000
            assert (await session.complete([user("a short story")])).message["content"] == "ok"

    with WireServer([refusals.OVERFLOWS[who], Reply(text="ok")]) as server:
        asyncio.run(main(server))
    assert [m["content"] for m in server.requests[1].body["messages"]] == ["a short story"]


def test_agt_21_a_short_wait_is_kept():
    with WireServer([refusals.openai_rate_limit("1"), Reply(text="ok")]) as server:
        shown: list[Any] = []
        assert say(server, on_delta=shown.append).message["content"] == "ok"
    first, second = server.requests
    assert second.at - first.at >= 1
    assert [d.wait_seconds for d in shown if isinstance(d, Retrying)] == [1]


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (refusals.openai_rate_limit("3600"), "asks to wait 1 h"),
        (refusals.openai_no_quota(), "no quota or credit left"),
        (refusals.openai_bad_key(), "check OPENAI_API_KEY"),
        (refusals.openai_unknown_model(), "has no model 'test-model'"),
    ],
)
def test_agt_21_what_waiting_does_not_mend_ends_at_once(refusal, told):
    meter = LoggingMeter()
    with WireServer([refusal]) as server:
        with pytest.raises(PolicyError, match=told):
            say(server, bounds=Bounds(meter))
        assert len(server.requests) == 1
    assert meter.kinds == ["reserve", "release"]


def test_agt_22_a_rate_limit_loses_no_rounds_and_shows_no_account():
    body = "Rate limit reached in organization org-ABCDEF123 for key sk-test-0123456789abcdef"
    limit = Refusal(429, body, headers={"retry-after-ms": "200"})
    rounds = [Reply(calls=[Call("note_down", {"text": str(n)})]) for n in range(4)]
    shown: list[Any] = []
    with WireServer([*rounds, limit, Reply(text="ok")]) as server:
        result = run_loop(server, on_delta=shown.append)
    assert (result.final_text, ran) == ("ok", ["0", "1", "2", "3"])
    told = repr(shown) + repr(result)
    assert "Rate limit reached" in told
    assert "org-ABCDEF123" not in told
    assert "sk-test" not in told


HISTORY = [
    system("be brief"),
    user("one"),
    user("two"),
    assistant(None, [tool_call("c1", "note_down", "{}")]),
    tool_result(tool_call("c1", "note_down", "{}"), "{}"),
    user("three"),
]


@pytest.mark.parametrize("known", [False, True])
def test_agt_24_templates_that_want_turns_get_them(known):
    with WireServer([Reply(text="ok"), Reply(text="again")], alternate=True) as server:

        async def twice(session: OpenAIChatSession) -> None:
            assert (await session.complete(HISTORY)).message["content"] == "ok"
            assert (await session.complete([user("four"), user("five")])).message["content"] == "again"

        talk(server, twice, merge_user_messages=known)
        assert server.violations == []
    assert len(server.requests) == (2 if known else 3)
    assert server.requests[-1].body["messages"][1] == {"role": "user", "content": "one\n\ntwo"}


def test_agt_24_a_template_that_refuses_even_so_is_one_clear_error():
    refusal = Refusal(500, "Conversation roles must alternate user/assistant/user/assistant/...")
    with WireServer(lambda request: refusal) as server:
        with pytest.raises(PolicyError, match="chat template of openai/test-model refuses the messages"):
            say(server)
        assert len(server.requests) == 2


def test_agt_25_reasoning_goes_back_in_the_field_that_the_endpoint_takes():
    replies = [Reply(text="I note.", reasoning="hm", calls=[Call("note_down")]), Reply(text="ok")]
    for field in ("reasoning_content", "reasoning"):
        with WireServer(replies, allowed=[field]) as server:
            assert run_loop(server, reasoning_field=field).final_text == "ok"
            assert server.violations == []
        assert server.requests[1].body["messages"][1][field] == "hm"


def test_agt_25_a_refusal_names_the_field_and_the_setting():
    replies = [Reply(text="I note.", reasoning="hm", calls=[Call("note_down")]), Reply(text="ok")]
    with WireServer(replies) as server:
        result = run_loop(server, provider="local", reasoning_field="reasoning_content")
    assert result.stop is StopReason.ERROR
    assert "'reasoning_content'" in (result.error or "")
    assert "endpoints.local.reasoning_field" in (result.error or "")
    assert len(server.requests) == 2


@pytest.mark.parametrize("hang", ["before the answer", "in the answer"])
def test_agt_30_an_interrupt_ends_a_hanging_request_at_once(hang):
    fault = Fault("hang", None if hang == "before the answer" else 2)
    meter = LoggingMeter()

    async def interrupted(session: OpenAIChatSession) -> None:
        request = asyncio.create_task(session.complete([user("hi")]))
        await asyncio.to_thread(wait_for_request, server)
        request.cancel()
        with suppress(asyncio.CancelledError):
            await request
        assert request.cancelled()

    with WireServer([Reply(text="a long answer", fault=fault), Reply(text="no")]) as server:
        talk(server, interrupted, bounds=Bounds(meter))
        time.sleep(0.2)
        assert len(server.requests) == 1
    assert meter.kinds == ["reserve", "unknown"]


def test_trj_10_half_surrogates_are_replaced_before_they_are_sent():
    bad = "caf\udc97 \ud83d\ude00"
    call = tool_call("c1", "note_down", json.dumps({"text": "x"}) + bad)
    history = [user(bad), assistant(bad, [call]), tool_result(call, bad), user("and?")]
    with WireServer([Reply(text="ok")]) as server:
        assert say(server, *history, reasoning_field=None).message["content"] == "ok"
        assert server.violations == []
    assert (
        server.requests[0].body["messages"][0]["content"] == "caf\N{REPLACEMENT CHARACTER} \N{GRINNING FACE}"
    )


@pytest.mark.parametrize("kind", ["cut", "end", "reset", "garbage", "error"])
def test_a_broken_answer_is_asked_for_again_and_may_have_been_billed(kind):
    meter, shown = LoggingMeter(), list[Any]()
    broken = Reply(text="half an answer", fault=Fault(kind, 3))
    with WireServer([broken, Reply(text="whole")]) as server:
        completion = say(server, bounds=Bounds(meter), on_delta=shown.append)
    assert completion.message["content"] == "whole"
    assert meter.kinds == ["reserve", "unknown", "reserve", "settle"]
    assert (completion.usage.requests, completion.usage.dollars) == (2, 1.5)
    assert meter.log[1][1].output_tokens > 0
    at = next(i for i, delta in enumerate(shown) if isinstance(delta, Retrying))
    assert "".join(d.text for d in shown[at + 1 :]) == "whole"


@pytest.mark.parametrize("kind", ["cut", "end", "reset", "garbage", "error"])
def test_what_breaks_after_the_finish_reason_takes_nothing_away(kind):
    with WireServer([Reply(text="whole", fault=Fault(kind, -2))]) as server:  # no usage, no [DONE]
        completion = say(server)
        assert len(server.requests) == 1
    assert completion.message["content"] == "whole"
    assert completion.usage.input_tokens > 0
    assert completion.usage.output_tokens > 0


def test_a_failed_server_is_asked_again_and_not_paid():
    meter = LoggingMeter()
    with WireServer(
        [refusals.openai_overloaded(), refusals.openai_server_error(), Reply(text="ok")]
    ) as server:
        completion = say(server, bounds=Bounds(meter))
    assert (completion.usage.requests, completion.usage.dollars) == (3, 1.0)
    assert meter.kinds == ["reserve", "release", "reserve", "release", "reserve", "settle"]


def test_a_budget_that_is_used_up_stops_the_request_before_it_is_sent():
    with WireServer([Reply(text="no")]) as server:
        with pytest.raises(BudgetExhausted):
            say(server, bounds=Bounds(LoggingMeter(requests_left=0)))
        assert server.requests == []


def test_a_server_that_is_not_there():
    with WireServer() as server:
        place = server.openai_url
    policy = OpenAIChatPolicy(Endpoint("local", "m", place), WaitPolicy(attempts=2, base=0.01))

    async def main() -> None:
        async with policy.open("r", [], Sampling()) as session:
            await session.complete([user("hi")])

    with pytest.raises(PolicyError, match=r"cannot connect to 127\.0\.0\.1:\d+: is the server running"):
        asyncio.run(main())


REFUSED = {
    "stream_options": Refusal(400, "Unrecognized request argument supplied: stream_options"),
    "temperature": Refusal(
        400,
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) is.",
        code="unsupported_value",
        param="temperature",
    ),
    "max_tokens": Refusal(
        400,
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'"
        " instead.",
        code="unsupported_parameter",
        param="max_tokens",
    ),
    "seed": Refusal(
        422, "", body={"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
    ),
}


def test_fields_that_a_model_refuses_are_left_out_from_then_on():
    def answer(request: Any) -> Any:
        return next((REFUSED[field] for field in REFUSED if field in request.body), Reply(text="ok"))

    sampling = Sampling(temperature=0.5, max_tokens=100, seed=3, top_p=0.9)

    async def main(server: WireServer) -> None:
        policy = OpenAIChatPolicy(endpoint(server), QUICK)
        for _ in range(2):
            async with policy.open("r", [], sampling) as session:
                completion = await session.complete([user("hi")])
                assert completion.message["content"] == "ok"

    with WireServer(answer) as server:
        asyncio.run(main(server))
        assert server.violations == []
    assert len(server.requests) == len(REFUSED) + 2
    sent = server.requests[-1].body
    assert (sent["max_completion_tokens"], sent["top_p"]) == (100, 0.9)
    assert not set(REFUSED) & set(sent)


def test_a_field_that_is_needed_is_not_left_out():
    refusal = Refusal(400, "Unsupported parameter: 'tools' is not supported with this model.", param="tools")
    with WireServer(lambda request: refusal) as server:
        with pytest.raises(PolicyError, match="tools"):
            say(server)
        assert len(server.requests) == 1


def test_system_messages_go_to_the_user_where_the_template_has_none():
    def answer(request: Any) -> Any:
        refused = "system" in roles(request)
        return Refusal(400, "System role not supported") if refused else Reply(text="ok")

    with WireServer(answer) as server:
        assert say(server, system("be brief"), user("hi")).message["content"] == "ok"
    assert server.requests[1].body["messages"] == [{"role": "user", "content": "be brief\n\nhi"}]


def test_openai_itself_gets_the_newer_limit_and_a_cache_key():
    own = Endpoint("openai", "gpt-x", None, "sk-key")
    request = request_of(own, dialect_of(own), [], [], Sampling(max_tokens=9), "rollout-1")
    assert (request["max_completion_tokens"], request["prompt_cache_key"]) == (9, "rollout-1")
    other = Endpoint("openrouter", "x/y", "https://openrouter.ai/api/v1", "sk-key")
    request = request_of(other, dialect_of(other), [], [], Sampling(max_tokens=9), "rollout-1")
    assert request["max_tokens"] == 9
    assert "prompt_cache_key" not in request


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


def test_arguments_that_are_no_json_can_be_sent_back():
    with WireServer([Reply(calls=[Call("note down!", '{"text": ')]), Reply(text="ok")]) as server:
        result = run_loop(server)
        assert server.violations == []
    assert result.final_text == "ok"
    assert result.calls[0].arguments == '{"text": '
    sent = server.requests[1].body["messages"][1]["tool_calls"][0]["function"]
    assert json.loads(sent["arguments"]) == {"invalid_json": '{"text":'}


def test_what_must_go_back_goes_back_to_the_same_model_only():
    whole = {"type": "reasoning.text", "text": "hm", "index": 0, "signature": "sig"}
    pieces = [whole | {"text": "h", "signature": None}, whole | {"text": "m"}]
    deltas = [{"content": "yes"}, *({"reasoning_details": [piece]} for piece in pieces)]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    body = Raw(b"".join(map(openai_wire.event, chunks)) + openai_wire.DONE)
    with WireServer([body, Reply(text="ok"), Reply(text="ok")], allowed=["reasoning_details"]) as server:
        message = say(server).message
        assert message["reasoning"] == "hm"
        say(server, user("hi"), message, user("more"))
        say(server, user("hi"), message, user("more"), provider="another")
    sent = [request.body["messages"][1].get("reasoning_details") for request in server.requests[1:]]
    assert sent == [[whole], None]


def test_account_ids_are_sent_to_openai_only(monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-somebody")
    with WireServer([Reply(text="ok")]) as server:
        say(server, headers={"x-title": "rl-cli"})
    assert "openai-organization" not in server.requests[0].headers
    assert server.requests[0].headers["x-title"] == "rl-cli"


@pytest.mark.parametrize("finish", [None, "stop", "length", "content_filter"])
def test_empty_replies_are_replies(finish):
    with WireServer([Reply(text="", finish=finish)]) as server:
        completion = say(server)
    assert completion.message == {"role": "assistant", "content": None}
    expected = FinishReason(finish or "stop")
    assert completion.finish_reason is expected


def test_sessions_go_on_after_a_failure_as_if_it_had_not_been():
    errors = itertools.repeat(refusals.openai_server_error(), 4)
    with WireServer([Reply(text="one"), *errors, Reply(text="two")]) as server:

        async def conversation(session: OpenAIChatSession) -> Any:
            await session.complete([user("a")])
            with pytest.raises(PolicyError):
                await session.complete([user("b")])
            return await session.complete([user("b")])

        assert talk(server, conversation).message["content"] == "two"
        assert server.violations == []
    assert roles(server.requests[-1]) == ["user", "assistant", "user"]
