"""Plays the project's scripted YAML files over the wire.

A request holds the whole conversation, so the script is played again up to where it stands: the same request
gets the same answer, however often it is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.policies.base import PolicyError, Sampling
from environments.policies.scripted import ScriptedPolicy
from rl_cli.core.messages import Message, user
from tests.wire.replies import Answer, Call, Refusal, Reply

if TYPE_CHECKING:
    from tests.wire.server import Request


def play(path: Path | str, **settings: Any) -> Callable[[Request], Answer]:
    """A function for `WireServer`; `settings` go into every Reply (reasoning="...", piece=3, ...).

    Where no reply of the script fits, the server answers 400 with the reason and notes a violation.
    """
    policy = ScriptedPolicy(path)

    def answer(request: Request) -> Answer:
        try:
            message = asyncio.run(_replay(policy, conversation(request.api, request.body)))
        except PolicyError as error:
            request.violations.append(str(error))
            return Refusal(400, str(error))
        calls = [
            Call(call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", [])
        ]
        return Reply(message["content"], calls, **settings)

    return answer


async def _replay(policy: ScriptedPolicy, messages: list[Message]) -> Message:
    """Each time the model answered in this conversation, the script answers anew; its last answer counts."""
    async with policy.open("wire", [], Sampling()) as session:
        waiting: list[Message] = []
        for message in messages:
            if message["role"] == "assistant":
                await session.complete(waiting)
                waiting = []
            else:
                waiting.append(message)
        return (await session.complete(waiting)).message


def conversation(api: str, body: dict[str, Any]) -> list[Message]:
    """The request's messages in our own form, tool messages with their names."""
    return _from_messages(body["messages"]) if api == "anthropic" else _from_chat(body["messages"])


def _from_chat(messages: list[dict[str, Any]]) -> list[Message]:
    names = {c["id"]: c["function"]["name"] for m in messages for c in m.get("tool_calls") or []}
    plain: list[Message] = []
    for message in messages:
        one: Message = {"role": message["role"], "content": _text(message.get("content"))}
        if message["role"] == "tool":
            one["name"] = names[message["tool_call_id"]]
        plain.append(one)
    return plain


def _from_messages(messages: list[dict[str, Any]]) -> list[Message]:
    names: dict[str, str] = {}
    plain: list[Message] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        names |= {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
        if message["role"] == "assistant":
            plain.append({"role": "assistant", "content": None})
            continue
        for block in blocks:
            if block["type"] == "tool_result":
                result: Message = {"role": "tool", "content": _text(block.get("content"))}
                result["name"] = names[block["tool_use_id"]]
                plain.append(result)
            else:
                plain.append(user(block["text"]))
    return plain


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""
