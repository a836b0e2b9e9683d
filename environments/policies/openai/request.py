"""Messages, tools, sampling -> the arguments of the OpenAI SDK's `chat.completions.create`.

What a server turns out not to take is kept in a Dialect: a refusal that `adapted` understands changes it, and
the request is made again without asking anybody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from environments.policies.base import Sampling
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.server_said import ServerSaid
from environments.policies.openai.call_slots import is_object
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.messages import Message, ToolCall

OPTIONAL = ("stream_options", "temperature", "top_p", "seed", "prompt_cache_key", "reasoning_effort")
"""Fields that a request can do without. Without the sampling ones the endpoint uses its own."""
_REFUSES = re.compile(
    r"unsupported|not support|unknown|unrecogni[sz]ed|unexpected|extra (?:inputs|fields)|not permitted"
    r"|not allowed|not accept|invalid (?:parameter|argument|field)|only the default|deprecated|use 'max_"
)


@dataclass(frozen=True)
class Dialect:
    """How an endpoint wants its requests."""

    max_tokens_field: str = "max_tokens"
    swapped: bool = False
    """It refused the other name of that field."""
    unlimited: bool = False
    """It takes no limit of an answer's tokens, by neither name."""
    dropped: frozenset[str] = frozenset()
    """Of OPTIONAL: what it refused."""
    alternating: bool = False
    """Its template wants user and assistant in turns."""
    system_in_user: bool = False
    """Its template knows no system message."""


def dialect_of(endpoint: Endpoint) -> Dialect:
    """What is known before the first request."""
    field = "max_completion_tokens" if is_openai(endpoint) else "max_tokens"
    return Dialect(field, alternating=endpoint.merge_user_messages)


def is_openai(endpoint: Endpoint) -> bool:
    """Whether it is OpenAI's own."""
    host = urlsplit(endpoint.base_url or "").hostname
    return endpoint.provider == "openai" and (host is None or host.endswith("openai.com"))


def adapted(dialect: Dialect, said: ServerSaid, request: dict[str, Any]) -> Dialect | None:
    """The dialect after a refusal of `request`; None where it tells of nothing that can be changed."""
    text = said.text
    if "system role" in text and not dialect.system_in_user:
        return replace(dialect, system_in_user=True)
    if "alternat" in text and "role" in text:
        return None if dialect.alternating else replace(dialect, alternating=True)
    if not _REFUSES.search(text):
        return None
    named = [said.param] if said.param in request else [f for f in request if _names(text, f)]
    if dialect.max_tokens_field in named:
        fields = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        other = fields[dialect.max_tokens_field]
        if dialect.swapped:
            return replace(dialect, unlimited=True)
        return replace(dialect, max_tokens_field=other, swapped=True)
    refused = {field for field in named if field in OPTIONAL}
    return replace(dialect, dropped=dialect.dropped | refused) if refused else None


def request_of(
    endpoint: Endpoint,
    dialect: Dialect,
    messages: list[dict[str, Any]],
    tools: list[dict[str, Any]],
    sampling: Sampling,
    rollout_id: str,
) -> dict[str, Any]:
    """The request; `messages` are of `wire_message`."""
    request: dict[str, Any] = {
        "model": endpoint.model,
        "messages": _arranged(messages, dialect),
        "stream": endpoint.stream,
    }
    if tools:
        request["tools"] = tools
    optional: dict[str, Any] = {
        "stream_options": {"include_usage": True} if endpoint.stream else None,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "reasoning_effort": sampling.reasoning_effort,
        "prompt_cache_key": rollout_id[:64] if is_openai(endpoint) and rollout_id else None,
    }
    request |= {k: v for k, v in optional.items() if v is not None and k not in dialect.dropped}
    if (limit := max_output(endpoint, sampling)) is not None and not dialect.unlimited:
        request[dialect.max_tokens_field] = limit
    return request


def max_output(endpoint: Endpoint, sampling: Sampling) -> int | None:
    """The most new tokens of a completion; None leaves it to the endpoint."""
    limits = [n for n in (sampling.max_tokens, endpoint.max_output_tokens) if n is not None]
    return min(limits, default=None)


def wire_message(message: Message, endpoint: Endpoint) -> dict[str, Any]:
    """One message as the endpoint takes it: valid UTF-8, calls with arguments that can be read."""
    text = repair_surrogates(message["content"] or "")
    role = message["role"]
    if role == "tool":
        wire: dict[str, Any] = {"role": role, "content": text, "tool_call_id": message["tool_call_id"]}
        if message.get("name"):
            wire["name"] = _name(message["name"])  # not in the SDK's types; some templates and Gemini want it
        return wire
    if role != "assistant":
        return {"role": role, "content": text}
    calls = message.get("tool_calls")
    state: dict[str, Any] = message.get("provider_state", {}).get("openai", {})
    state = state if state.get("model") == endpoint.name else {}
    wire = {"role": role, "content": text or (None if calls else "")}
    if endpoint.reasoning_field and message.get("reasoning"):
        wire[endpoint.reasoning_field] = repair_surrogates(message["reasoning"])
    if "reasoning_details" in state:
        wire["reasoning_details"] = state["reasoning_details"]
    if calls:
        extra = state.get("extra_content", {})
        wire["tool_calls"] = [_wire_call(call, extra.get(call["id"])) for call in calls]
    return wire


def _wire_call(call: ToolCall, extra: Any) -> dict[str, Any]:
    """Servers read the arguments, and refuse the whole conversation over text that is not JSON."""
    arguments = repair_surrogates(call["function"]["arguments"])
    if not is_object(arguments):
        given = arguments.strip()
        arguments = "{}" if given in ("", "null") else json.dumps({"invalid_json": given}, ensure_ascii=False)
    function = {"name": _name(call["function"]["name"]), "arguments": arguments}
    wire = {"id": call["id"], "type": "function", "function": function}
    return wire | ({"extra_content": extra} if extra else {})


def _name(name: str) -> str:
    """A tool's name in the characters that servers take, whatever the model invented."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"


def _names(text: str, field: str) -> bool:
    return re.search(rf"(?<![\w]){field}(?![\w])", text) is not None


def _arranged(messages: list[dict[str, Any]], dialect: Dialect) -> list[dict[str, Any]]:
    if dialect.system_in_user:
        messages = list(_system_in_user(messages))
    return list(_alternating(messages)) if dialect.alternating else messages


def _system_in_user(messages: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "system":
            waiting.append(message["content"])
        elif waiting and message["role"] == "user":
            yield {"role": "user", "content": "\n\n".join([*waiting, message["content"]])}
            waiting = []
        else:
            yield message
    if waiting:
        yield {"role": "user", "content": "\n\n".join(waiting)}


def _alternating(messages: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Neighbouring messages of one speaker in one; an assistant message between a tool's and a user's."""
    last: dict[str, Any] | None = None
    for message in messages:
        if last is not None and _same_speaker(last, message):
            last = last | {"content": f"{last['content']}\n\n{message['content']}"}
            continue
        if last is not None:
            yield last
            if (last["role"], message["role"]) == ("tool", "user"):
                yield {"role": "assistant", "content": "(no reply)"}
        last = message
    if last is not None:
        yield last


def _same_speaker(a: dict[str, Any], b: dict[str, Any]) -> bool:
    mergeable = a["role"] in ("user", "assistant") and "tool_calls" not in a and "tool_calls" not in b
    return a["role"] == b["role"] and mergeable
