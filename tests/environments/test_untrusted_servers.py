"""What a server that means harm can do to a policy: nothing with the key, little with its answers."""

from __future__ import annotations

import asyncio
import gzip
import time
from contextlib import suppress
from typing import Any

import pytest

from environments.policies.anthropic.messages import AnthropicPolicy
from environments.policies.base import Bounds, Completion, PolicyError, Sampling
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy
from rl_cli.core.messages import user
from tests.environments.meters import LoggingMeter
from tests.environments.openai_talk import wait_for_request
from tests.wire.server import Fault, Raw, Refusal, Reply, WireServer

APIS = ("openai", "anthropic")
KEY = "sk-the-key-of-this-test"
BODIES = {
    "openai": '{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}',
    "anthropic": '{"content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn"}',
}


def policy(api: str, server: WireServer, **settings: Any) -> OpenAIChatPolicy | AnthropicPolicy:
    url = server.openai_url if api == "openai" else server.anthropic_url
    endpoint = Endpoint("mine", "m", url, KEY, **settings)
    wait = WaitPolicy(attempts=3, base=0.01, cap=0.02)
    return OpenAIChatPolicy(endpoint, wait) if api == "openai" else AnthropicPolicy(endpoint, wait)


def ask(api: str, server: WireServer, meter: Any = None, **settings: Any) -> Completion:
    async def main() -> Completion:
        async with policy(api, server, **settings).open("r", [], Sampling(), None, Bounds(meter)) as session:
            return await session.complete([user("hi")])

    return asyncio.run(main())


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("api", APIS)
def test_a_redirect_takes_neither_key_nor_conversation_to_another_address(api, status):
    meter = LoggingMeter()
    with WireServer([Reply("stolen")]) as thief:
        path = "/v1/chat/completions" if api == "openai" else "/v1/messages"
        url = thief.openai_url if api == "openai" else thief.anthropic_url
        location = {"location": thief.root + path}
        with (
            WireServer([Refusal(status, "moved", headers=location)]) as server,
            pytest.raises(PolicyError, match=f"mine sends you to {url}: set base_url to it"),
        ):
            ask(api, server, meter)
        assert thief.requests == []
    assert meter.kinds == ["reserve", "release"]


@pytest.mark.parametrize("api", APIS)
def test_a_huge_error_is_read_in_part_and_keeps_its_meaning(api):
    body = b'{"error": {"message": "' + b"x" * 5_000_000
    raw = Raw(body, "application/json", status=401)
    with WireServer([raw]) as server, pytest.raises(PolicyError, match="mine refused the key"):
        ask(api, server)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("api", APIS)
def test_a_small_body_that_unpacks_to_a_huge_one_is_given_up(api, status):
    bomb = gzip.compress(b" " * 100_000_000)
    raw = Raw(bomb, "application/json", status=status, headers={"content-encoding": "gzip"})
    told = "sent more than 32 MB" if status == 200 else "refused the request"
    with WireServer([raw]) as server, pytest.raises(PolicyError, match=told):
        ask(api, server)
    assert server.requests[0].headers["accept-encoding"] == "identity"
    assert len(server.requests) == 1


@pytest.mark.parametrize("api", APIS)
def test_a_compressed_answer_is_read_all_the_same(api):
    body = gzip.compress(BODIES[api].encode())
    raw = Raw(body, "application/json", headers={"content-encoding": "gzip"}, write_size=10)
    with WireServer([raw]) as server:
        assert ask(api, server, stream=False).message["content"] == "hello"


@pytest.mark.parametrize("api", APIS)
def test_an_unknown_compression_is_refused(api):
    raw = Raw(b"abc", "application/json", headers={"content-encoding": "br"})
    with WireServer([raw]) as server, pytest.raises(PolicyError, match="compression 'br'"):
        ask(api, server)


@pytest.mark.parametrize("api", APIS)
def test_json_nested_without_end_is_no_answer(api):
    raw = Raw(b"[" * 200_000, "application/json")
    with WireServer([raw] * 3) as server, pytest.raises(PolicyError, match="was lost"):
        ask(api, server)


@pytest.mark.parametrize("says", ["inf", "1e400", "nan", "-inf", "infinity"])
@pytest.mark.parametrize("api", APIS)
def test_a_wait_that_is_no_number_is_not_asked_for(api, says):
    with WireServer([Refusal(429, "slow down", headers={"retry-after": says}), Reply("ok")]) as server:
        assert ask(api, server).message["content"] == "ok"


@pytest.mark.parametrize("api", APIS)
def test_what_the_sdk_finds_in_the_environment_goes_to_its_own_provider_only(api, monkeypatch):
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "x-gateway-secret: private-1\nAuthorization: Bearer private-2")
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "private-3")
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_WORKSPACE_ID"):
        monkeypatch.setenv(name, "private-4")
    with WireServer([Reply("ok")]) as server:
        ask(api, server, headers={"x-mine": "yes"})
    sent = server.requests[0].headers
    assert "private" not in repr(sent)
    assert (sent["x-mine"], sent["authorization"]) == ("yes", f"Bearer {KEY}")


def wait_until_gone(server: WireServer) -> None:
    while not server.requests[0].gone:
        time.sleep(0.01)


@pytest.mark.parametrize("after", [None, 3])
@pytest.mark.parametrize("api", APIS)
def test_an_interrupted_request_closes_its_connection_while_the_session_is_still_open(api, after):
    async def main(server: WireServer) -> None:
        async with policy(api, server).open("r", [], Sampling()) as session:
            request = asyncio.create_task(session.complete([user("hi")]))
            await asyncio.to_thread(wait_for_request, server)
            request.cancel()
            with suppress(asyncio.CancelledError):
                await request
            await asyncio.to_thread(wait_until_gone, server)

    with WireServer([Reply("a long answer", fault=Fault("hang", after))]) as server:
        asyncio.run(asyncio.wait_for(main(server), 60))
