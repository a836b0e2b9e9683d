"""Requests take the form that each endpoint of OpenAI's kind wants."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from environments.agent_loop import StopReason
from environments.policies.base import (
    PolicyError,
    Sampling,
)
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy, OpenAIChatSession
from environments.policies.openai.request import dialect_of, request_of
from rl_cli.core.messages import assistant, system, tool_call, tool_result, user
from tests.environments.openai_talk import QUICK, endpoint, roles, run_loop, say, talk
from tests.wire import openai_wire
from tests.wire.server import Call, Raw, Refusal, Reply, WireServer

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
