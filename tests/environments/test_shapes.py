"""Every recorded awkward shape, through the real SDK and policy, gives the right message."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from environments.policies import base
from environments.policies.anthropic.messages import AnthropicPolicy
from environments.policies.base import Completion, Delta, PolicyError, Retrying, Sampling, TextDelta
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy
from rl_cli.core.messages import tool_result, user
from tests.wire import shapes
from tests.wire.server import Reply, WireServer

SHAPES = shapes.load()
WAIT = WaitPolicy(attempts=2, base=0.001, cap=0.002)


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with WireServer() as running:
        yield running


def test_there_are_enough_and_each_has_its_own_name():
    assert len(SHAPES) >= 200
    assert len({shape["id"] for shape in SHAPES}) == len(SHAPES)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["id"])
def test_shape(server: WireServer, shape: shapes.Shape):
    expected = shape["expect"]
    first = len(server.requests)
    server.set(shapes.answers(shape))
    server.allowed = frozenset(shape.get("allowed", ()))
    shown: list[Delta] = []
    got, after = asyncio.run(_play(server, shape, shown))

    requests = server.requests[first:]
    assert [violation for request in requests for violation in request.violations] == []
    if expected.get("error"):
        assert isinstance(got, getattr(base, expected["error"])), got
        assert expected.get("error_text", "") in str(got)
        assert not any(hidden in str(got) for hidden in expected.get("hidden", []))
        return
    assert isinstance(got, Completion), got
    assert after
    assert len(requests) - 1 == expected.get("attempts", 1)
    _compare(got, expected)
    if shapes.is_streamed(shape) and expected.get("shown", not got.call_errors):
        assert _shown_at_last(shown).strip() == (got.message["content"] or "").strip()


async def _play(
    server: WireServer, shape: shapes.Shape, shown: list[Delta]
) -> tuple[Completion | PolicyError, bool]:
    """The answer to a first request, and whether the conversation could go on after it."""
    policy = _policy(server, shape)
    schema = {"type": "object", "properties": {}}
    tools = [{"type": "function", "function": {"name": n, "parameters": schema}} for n in shape["tools"]]
    async with policy.open("shape", tools, Sampling(), shown.append) as session:
        try:
            got = await session.complete([user("hi")])
        except PolicyError as error:
            return error, False
        streamed = list(shown)
        server.set([Reply("done")])
        calls = got.message.get("tool_calls", [])
        await session.complete([tool_result(call, "1") for call in calls] or [user("go on")])
        shown[:] = streamed
        return got, True


def _policy(server: WireServer, shape: shapes.Shape) -> OpenAIChatPolicy | AnthropicPolicy:
    openai = shape["api"] == "openai"
    endpoint = Endpoint(
        shape["api"],
        "m",
        base_url=server.openai_url if openai else server.anthropic_url,
        api_key="k",
        stream=shapes.is_streamed(shape),
        **shape.get("endpoint", {}),
    )
    return OpenAIChatPolicy(endpoint, WAIT) if openai else AnthropicPolicy(endpoint, WAIT)


def _compare(got: Completion, expected: dict[str, Any]) -> None:
    message, calls = got.message, got.message.get("tool_calls", [])
    if not expected.get("any_content"):
        assert (message["content"] or None) == (expected["content"] or None)
    assert (message.get("reasoning") or None) == (expected.get("reasoning") or None)
    assert [call["function"]["name"] for call in calls] == [call["name"] for call in expected["tool_calls"]]
    for call, wanted in zip(calls, expected["tool_calls"], strict=True):
        text = call["function"]["arguments"]
        if isinstance(wanted["arguments"], str):
            assert text == wanted["arguments"]
        else:
            assert json.loads({"": "{}", "null": "{}"}.get(text.strip(), text)) == wanted["arguments"]
    assert got.finish_reason.value == expected["finish"]
    ids = [call["id"] for call in calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert ids == expected.get("ids", ids)
    assert len(got.call_errors) == expected.get("call_errors", 0)
    for name, count in expected.get("usage", {}).items():
        assert getattr(got.usage, name) == count, name


def _shown_at_last(shown: list[Delta]) -> str:
    """The text that was streamed of the attempt that counts."""
    start = max((n + 1 for n, delta in enumerate(shown) if isinstance(delta, Retrying)), default=0)
    return "".join(delta.text for delta in shown[start:] if isinstance(delta, TextDelta))
