"""The Anthropic policy over real HTTP: whole conversations, broken answers, refusals, money."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from environments.policies.anthropic.messages import AnthropicPolicy
from environments.policies.base import (
    Bounds,
    BudgetExhausted,
    Completion,
    ContextOverflow,
    DeadlineReached,
    Delta,
    FinishReason,
    PolicyError,
    ReasoningDelta,
    Retrying,
    Sampling,
    TextDelta,
    Usage,
)
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from rl_cli.core.messages import Message, system, tool_result, user
from tests.wire import refusals
from tests.wire.server import Call, Fault, Raw, Refusal, Reply, Request, Tokens, WireServer

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": name, "description": f"To {name}.", "parameters": {}}}
    for name in ("look", "start")
]
HI = [user("hi")]
QUICK = WaitPolicy(base=0.01, cap=0.02)


@dataclass
class Purse:
    """A meter that notes what became of each reservation; a token costs a dollar."""

    refuse: bool = False
    ends: list[tuple[str, int, int]] = field(default_factory=list)

    def reserve(self, model: str, input_tokens: int, max_output_tokens: int) -> Purse:
        if self.refuse:
            raise BudgetExhausted("the day's budget is used up")
        return self

    def settle(self, usage: Usage) -> float:
        self.ends.append(("settled", usage.input_tokens, usage.output_tokens))
        return float(usage.input_tokens + usage.output_tokens)

    def release(self) -> None:
        self.ends.append(("released", 0, 0))

    def settle_unknown(self, usage: Usage) -> float:
        self.ends.append(("unknown", usage.input_tokens, usage.output_tokens))
        return 1.0


def policy(server: WireServer, wait: WaitPolicy = QUICK, **settings: Any) -> AnthropicPolicy:
    known = {"provider": "anthropic", "model": "claude-x", "base_url": server.anthropic_url, "api_key": "k"}
    return AnthropicPolicy(Endpoint(**(known | settings)), wait)


def ask(
    server: WireServer,
    messages: list[Message] | None = None,
    on_delta: Callable[[Delta], None] | None = None,
    bounds: Bounds | None = None,
    tools: list[dict[str, Any]] = TOOLS,
    **settings: Any,
) -> Completion:
    async def once() -> Completion:
        opened = policy(server, **settings).open("r", tools, Sampling(), on_delta, bounds)
        async with opened as session:
            return await session.complete(messages or HI)

    return asyncio.run(once())


def sse(*events: dict[str, Any], named: bool = True) -> bytes:
    return "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    ).encode()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("thinking", [False, True, 2048])
def test_a_conversation_with_calls_runs_to_its_end(stream: bool, thinking: Any) -> None:
    thought: dict[str, Any] = {"reasoning": "hm, so", "redacted": True} if thinking else {}
    replies = [
        Reply("I look.", [Call("look", {"n": 1}), Call("look", {"n": 2})], **thought),
        Reply(None, [Call("start")], **thought),
        Reply("Started.", usage=Tokens(120, 4, cached=90, cache_write=20)),
        Reply("Yes."),
    ]

    async def talk(server: WireServer) -> list[Completion]:
        done = []
        new = [system("You help."), user("train")]
        async with policy(server, stream=stream, thinking=thinking).open("r", TOOLS, Sampling()) as session:
            for _ in replies:
                done.append(await session.complete(new))
                calls = done[-1].message.get("tool_calls", [])
                new = [tool_result(call, '{"ok": true}') for call in calls] or [user("sure?")]
        return done

    with WireServer(replies) as server:
        done = asyncio.run(talk(server))
    assert server.violations == []
    assert [c.message["content"] for c in done] == ["I look.", None, "Started.", "Yes."]
    arguments = [call["function"]["arguments"] for call in done[0].message["tool_calls"]]
    assert [json.loads(text) for text in arguments] == [{"n": 1}, {"n": 2}]
    assert [c.finish_reason for c in done] == ["tool_calls", "tool_calls", "stop", "stop"]
    assert done[0].message.get("reasoning") == ("hm, so" if thinking else None)
    used = done[2].usage
    assert (used.input_tokens, used.cached_tokens, used.cache_write_tokens) == (120, 90, 20)
    assert (used.output_tokens, used.requests) == (4, 1)


def test_what_is_streamed_is_what_is_answered() -> None:
    deltas: list[Delta] = []
    with WireServer([Reply("Grüße an alle", [Call("look")], reasoning="langes Nachdenken")]) as server:
        done = ask(server, on_delta=deltas.append)
    said = "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))
    thought = "".join(delta.text for delta in deltas if isinstance(delta, ReasoningDelta))
    assert (said, thought) == (done.message["content"], done.message["reasoning"])
    assert len(deltas) > 4


@pytest.mark.parametrize(
    "reply",
    [
        Reply("all", final=False),
        Reply("all", fault=Fault("cut", -1)),
        Reply("all", fault=Fault("reset", -1)),
        Reply("all", fault=Fault("garbage", -1)),
        Reply("all", fault=Fault("error", -1, refusals.anthropic_overloaded())),
    ],
)
def test_agt_19_an_answer_with_a_stop_reason_is_complete_however_it_ends(reply: Reply) -> None:
    with WireServer([reply]) as server:
        done = ask(server)
    assert (done.message["content"], done.finish_reason) == ("all", FinishReason.STOP)
    assert len(server.requests) == 1


def test_a_connection_that_stays_open_after_the_answer_holds_nobody_up() -> None:
    with WireServer([Reply("all", fault=Fault("hang", -1))]) as server:
        assert ask(server).message["content"] == "all"
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "stream"),
    [
        (Fault("cut", 4), True),
        (Fault("end", 4), True),
        (Fault("reset", 4), True),
        (Fault("garbage", 4), True),
        (Fault("error", 4, refusals.anthropic_overloaded()), True),
        (Fault("cut"), True),
        (Fault("reset"), True),
        (Fault("cut", 1), False),
        (Fault("reset"), False),
    ],
)
def test_a_broken_answer_is_asked_for_again(fault: Fault, stream: bool) -> None:
    deltas: list[Delta] = []
    purse = Purse()
    with WireServer([Reply("a long answer, lost", fault=fault), Reply("answer")]) as server:
        done = ask(server, on_delta=deltas.append, bounds=Bounds(purse), stream=stream)
    assert done.message["content"] == "answer"
    assert done.usage.requests == 2
    again = next(i for i, delta in enumerate(deltas) if isinstance(delta, Retrying))
    assert "".join(d.text for d in deltas[again:] if isinstance(d, TextDelta)) == "answer"
    assert [how for how, _, _ in purse.ends] == ["unknown", "settled"]
    assert done.usage.dollars == 1.0 + done.usage.input_tokens + done.usage.output_tokens


def test_agt_21_a_short_wait_is_kept_to_and_a_long_one_is_the_end() -> None:
    with WireServer([refusals.anthropic_rate_limit("1"), Reply("now")]) as server:
        assert ask(server).message["content"] == "now"
    first, second = (request.at for request in server.requests)
    assert second - first >= 1
    with (
        WireServer([refusals.anthropic_rate_limit("3600")]) as server,
        pytest.raises(PolicyError, match="1 h"),
    ):
        ask(server)
    assert len(server.requests) == 1
    with WireServer([refusals.anthropic_no_credit()]) as server, pytest.raises(PolicyError, match="credit"):
        ask(server)
    assert len(server.requests) == 1


def test_an_overloaded_server_is_asked_again_and_nothing_was_billed() -> None:
    purse = Purse()
    answers = [refusals.anthropic_overloaded(), refusals.anthropic_server_error(), Reply("yes")]
    with WireServer(answers) as server:
        assert ask(server, bounds=Bounds(purse)).message["content"] == "yes"
    assert purse.ends[0][0] == "released"
    assert purse.ends[-1][0] == "settled"


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (refusals.anthropic_bad_key(), PolicyError, "ANTHROPIC_API_KEY"),
        (refusals.anthropic_unknown_model("claude-x"), PolicyError, "--model"),
        (refusals.anthropic_overflow(), ContextOverflow, "claude-x"),
        (Refusal(413, "Request exceeds the maximum size"), ContextOverflow, "claude-x"),
        (Raw(b"<html>Sign in</html>", "text/html"), PolicyError, "base_url"),
        (Raw(b'{"choices": []}', "application/json"), PolicyError, "base_url"),
    ],
)
def test_what_cannot_be_mended_by_asking_again_fails_at_once(
    answer: Any, kind: type[PolicyError], words: str
) -> None:
    with WireServer([answer]) as server, pytest.raises(kind, match=words) as raised:
        ask(server)
    assert len(server.requests) == 1
    assert "\n" not in str(raised.value)


def test_agt_24_two_user_messages_in_a_row_go_through_strict_templates() -> None:
    with WireServer([Reply("ok")], alternate=True) as server:
        done = ask(server, [user("one"), user("two")])
    assert done.message["content"] == "ok"
    assert server.violations == []


def test_agt_25_a_refused_field_is_named_with_its_setting() -> None:
    def strict(request: Request) -> Any:
        if "thinking" in request.body:
            return Refusal(400, "thinking: Extra inputs are not permitted")
        return Reply("ok")

    with WireServer(strict) as server:
        with pytest.raises(PolicyError, match=r"endpoints\.mine\.thinking"):
            ask(server, provider="mine", thinking=True)
        assert len(server.requests) == 1
        assert ask(server, provider="mine").message["content"] == "ok"


def test_agt_25_content_thinking_and_call_in_one_message_are_replayed() -> None:
    async def talk(server: WireServer) -> Completion:
        async with policy(server, thinking=True).open("r", TOOLS, Sampling()) as session:
            first = await session.complete(HI)
            return await session.complete([tool_result(c, "{}") for c in first.message["tool_calls"]])

    with WireServer([Reply("text", [Call("look")], reasoning="thought"), Reply("ok")]) as server:
        assert asyncio.run(talk(server)).message["content"] == "ok"
    assert server.violations == []
    kinds = [block["type"] for block in server.requests[1].body["messages"][1]["content"]]
    assert kinds == ["thinking", "text", "tool_use"]


def test_thinking_that_the_server_does_not_know_any_more_is_left_out() -> None:
    def forgetful(request: Request) -> Any:
        if any(b["type"] == "thinking" for m in request.body["messages"] for b in m["content"]):
            return Refusal(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
        return Reply("fine") if len(request.body["messages"]) > 1 else Reply("one", reasoning="hm")

    async def talk(server: WireServer) -> list[str | None]:
        async with policy(server, thinking=True).open("r", TOOLS, Sampling()) as session:
            return [(await session.complete([user(text)])).message["content"] for text in "abc"]

    with WireServer(forgetful, strict=False) as server:
        assert asyncio.run(talk(server)) == ["one", "fine", "fine"]
    assert len(server.requests) == 4  # only once in vain


def test_a_server_without_a_prompt_cache_is_asked_without_one() -> None:
    def simple(request: Request) -> Any:
        if "cache_control" in json.dumps(request.body):
            return Refusal(400, "system.0.cache_control: Extra inputs are not permitted")
        return Reply("fine")

    async def talk(server: WireServer) -> list[str | None]:
        async with policy(server).open("r", TOOLS, Sampling()) as session:
            return [(await session.complete([user(text)])).message["content"] for text in "ab"]

    with WireServer(simple) as server:
        assert asyncio.run(talk(server)) == ["fine", "fine"]
    assert len(server.requests) == 3  # only once in vain


def test_an_answer_that_the_token_limit_cut_makes_no_half_calls() -> None:
    reply = Reply("I", [Call("look", {"a": 1}), Call("start", '{"a": "x')], finish="max_tokens")
    with WireServer([reply]) as server:
        done = ask(server)
    assert done.finish_reason is FinishReason.LENGTH
    assert [call["function"]["name"] for call in done.message["tool_calls"]] == ["look"]
    assert done.call_errors == ["the call of start was cut by the token limit"]


def test_a_full_window_without_an_answer_is_an_overflow() -> None:
    full = "model_context_window_exceeded"
    with WireServer([Reply(None, finish=full), Reply("half an", finish=full)]) as server:
        with pytest.raises(ContextOverflow):
            ask(server)
        assert ask(server).finish_reason is FinishReason.LENGTH


def test_a_refusal_of_the_model_is_not_an_answer() -> None:
    with WireServer([Reply("I can", finish="refusal")]) as server:
        assert ask(server).finish_reason is FinishReason.CONTENT_FILTER


def test_where_the_answer_fails_the_session_can_be_asked_again() -> None:
    async def talk(server: WireServer) -> Completion:
        async with policy(server, WaitPolicy(attempts=1)).open("r", TOOLS, Sampling()) as session:
            with pytest.raises(PolicyError):
                await session.complete(HI)
            return await session.complete(HI)

    with WireServer([refusals.anthropic_server_error(), Reply("ok")]) as server:
        assert asyncio.run(talk(server)).message["content"] == "ok"
    assert [len(request.body["messages"][0]["content"]) for request in server.requests] == [1, 1]


def test_nothing_is_sent_without_budget_or_time() -> None:
    with WireServer() as server:
        with pytest.raises(BudgetExhausted):
            ask(server, bounds=Bounds(Purse(refuse=True)))
        with pytest.raises(DeadlineReached):
            ask(server, bounds=Bounds(deadline=time.monotonic() - 1))
    assert server.requests == []


def test_agt_30_a_cancelled_answer_ends_at_once_and_is_accounted_for() -> None:
    purse = Purse()

    async def cancelled(server: WireServer) -> None:
        begun = asyncio.Event()
        opened = policy(server).open("r", TOOLS, Sampling(), lambda delta: begun.set(), Bounds(purse))
        async with opened as session:
            answer = asyncio.create_task(session.complete(HI))
            await begun.wait()
            answer.cancel()
            with pytest.raises(asyncio.CancelledError):
                await answer

    with WireServer([Reply("a very long answer " * 50, gap=0.05)]) as server:
        asyncio.run(cancelled(server))
    assert [how for how, _, _ in purse.ends] == ["unknown"]


def test_a_compatible_server_gets_its_key_in_both_headers_and_no_other_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "mine-and-secret")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "mine-and-secret-too")
    with WireServer([Reply("a"), Reply("b"), Reply("c")]) as server:
        ask(server, provider="gateway", api_key="theirs")
        ask(server, provider="gateway", api_key=None)
        ask(server, provider="gateway", api_key=None, headers={"Authorization": "Basic abc", "X-Team": "t"})
    keyed, keyless, own = (request.headers for request in server.requests)
    assert (keyed["authorization"], keyed["x-api-key"]) == ("Bearer theirs", "theirs")
    assert "mine-and-secret" not in json.dumps(keyless)
    assert (own["authorization"], own["x-team"]) == ("Basic abc", "t")


def test_an_address_may_end_in_v1() -> None:
    with WireServer([Reply("ok")]) as server:
        assert ask(server, base_url=server.root + "/v1/").message["content"] == "ok"


def test_events_without_names_and_answers_that_are_not_streamed_are_read_too() -> None:
    events = [
        {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 0}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ok"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    ]
    body = {
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "output_tokens": 2},
    }
    answers = [
        Raw(sse(*events, named=False) + b"data: [DONE]\n\n"),
        Raw(sse(*events, named=False).rstrip(), write_size=1),
        Raw(json.dumps(body).encode(), "application/json"),
        Raw(json.dumps(body).encode(), "application/json; charset=utf-8"),
    ]
    with WireServer(answers) as server:
        for stream in (True, False, True, False):
            done = ask(server, stream=stream)
            assert done.message == {"role": "assistant", "content": "ok"}
            assert (done.usage.input_tokens, done.usage.output_tokens) == (3, 2)


def test_calls_and_thinking_that_compatible_servers_leave_in_the_text_are_found() -> None:
    text = (
        '<think>\nhm\n</think>\n\nI look.\n<tool_call>\n{"name": "look", "arguments": {"a": 1}}\n</tool_call>'
    )
    deltas: list[Delta] = []
    with WireServer([Reply(text, piece=3)]) as server:
        done = ask(server, on_delta=deltas.append)
    assert (done.message["reasoning"], done.message["content"]) == ("hm", "I look.")
    function = done.message["tool_calls"][0]["function"]
    assert (function["name"], json.loads(function["arguments"])) == ("look", {"a": 1})
    assert done.finish_reason is FinishReason.TOOL_CALLS
    assert "tool_call" not in "".join(d.text for d in deltas if isinstance(d, TextDelta))
    with WireServer([Reply('Send {"name": "look", "arguments": {}} to look.')]) as server:
        done = ask(server)
    assert "tool_calls" not in done.message
    assert done.message["content"] == 'Send {"name": "look", "arguments": {}} to look.'


def test_without_counts_from_the_server_the_usage_is_estimated() -> None:
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "x" * 70}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ]
    with WireServer([Raw(sse(*events))]) as server:
        used = ask(server, [user("y" * 700)]).usage
    assert used.output_tokens == 20
    assert used.input_tokens >= 200
