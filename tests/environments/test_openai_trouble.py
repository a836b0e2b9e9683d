"""What the OpenAI policy makes of refusals, limits, lost answers, interrupts."""

from __future__ import annotations

import asyncio
import itertools
import time
from contextlib import suppress
from typing import Any

import pytest

from environments.policies.base import (
    Bounds,
    BudgetExhausted,
    ContextOverflow,
    PolicyError,
    Retrying,
    Sampling,
)
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy, OpenAIChatSession
from rl_cli.core.messages import user
from tests.environments.meters import LoggingMeter
from tests.environments.openai_talk import QUICK, endpoint, ran, roles, run_loop, say, talk, wait_for_request
from tests.wire import refusals
from tests.wire.server import Call, Fault, Refusal, Reply, WireServer


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
