"""Conversations with the wire server through the OpenAI policy, for its tests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from environments import agent_loop
from environments.agent_loop import Limits
from environments.policies.base import Bounds, Sampling
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy, OpenAIChatSession
from rl_cli.core.messages import Message, user
from tests.wire.server import WireServer
from tools.dispatcher import CallContext, tool, tool_schemas

QUICK = WaitPolicy(attempts=4, base=0.01, cap=0.02)
ran: list[str] = []
"""What the tool was called with since the loop began."""


@tool(toolset="openai_tests", risk="read")
def note_down(text: str = "nothing") -> dict[str, str]:
    """Notes a text down.

    Args:
        text: What to note.
    """
    ran.append(text)
    return {"noted": text}


TOOLS = tool_schemas(["openai_tests"])


def endpoint(
    server: WireServer, provider: str = "openai", model: str = "test-model", **settings: Any
) -> Endpoint:
    return Endpoint(provider, model, server.openai_url, "sk-the-key-of-this-test", **settings)


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
