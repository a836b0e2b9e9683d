"""Messages, tools, sampling -> the arguments of the Anthropic SDK's `messages.create`.

The present API (version 2026-10-21) refuses temperature, top_p and top_k, so they go to compatible endpoints
only, as `extra_body`, where they differ from the API's default of 1. Seeds are not part of this API.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from environments.policies.anthropic.history import Turn, continues_thinking, split_system, turns_of
from environments.policies.base import Sampling
from environments.policies.endpoints.endpoint import Endpoint
from rl_cli.core.json_text import to_json
from rl_cli.core.messages import Message

DEFAULT_OUTPUT = 8192
"""New tokens per completion where nothing else is said; twice that where the model thinks."""
EFFORTS = ("low", "medium", "high", "xhigh", "max")
CACHE = {"type": "ephemeral"}


def request_of(
    endpoint: Endpoint,
    messages: list[Message],
    tools: list[dict[str, Any]],
    sampling: Sampling,
    caching: bool = True,
) -> dict[str, Any]:
    """The request, without `stream`. It is always valid JSON text and UTF-8.

    With `caching` it has at most four cache breakpoints: after the tools, after the system prompt, after the
    last two user turns (the last one moves on; the other is where the request before ended).
    """
    system, rest = split_system(messages)
    turns = turns_of(rest, origin_of(endpoint), unsigned=not is_anthropic(endpoint))
    request: dict[str, Any] = {"model": endpoint.model, **_thinking(endpoint, turns, sampling)}
    request["max_tokens"] = max_output(endpoint, sampling, request.get("thinking"))
    if system:
        request["system"] = [{"type": "text", "text": system}]
    if schemas := [_tool(schema) for schema in tools]:
        request["tools"] = schemas
    elif called := sorted({b["name"] for t in turns for b in t["content"] if b["type"] == "tool_use"}):
        # Calls in the conversation need tools in the request, even where none are offered any more.
        request["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in called]
        request["tool_choice"] = {"type": "none"}
    if caching:
        asked = [turn["content"] for turn in turns if turn["role"] == "user"]
        for blocks in (schemas, request.get("system"), *asked[-2:]):
            if blocks:
                blocks[-1]["cache_control"] = CACHE
    request["messages"] = turns
    if extra := _sampling(endpoint, sampling, request.get("thinking")):
        request["extra_body"] = extra
    repaired: dict[str, Any] = json.loads(to_json(request))
    return repaired


def origin_of(endpoint: Endpoint) -> str:
    """What thinking is tied to: only the model that signed it takes it back."""
    return f"{endpoint.provider}/{endpoint.model}"


def is_anthropic(endpoint: Endpoint) -> bool:
    """Whether it is Anthropic's own API and not one compatible with it."""
    host = urlsplit(endpoint.base_url).hostname if endpoint.base_url else "api.anthropic.com"
    return host is not None and (host == "anthropic.com" or host.endswith(".anthropic.com"))


def max_output(endpoint: Endpoint, sampling: Sampling, thinking: dict[str, Any] | None) -> int:
    """Most new tokens of a completion; a thinking budget that leaves no room for an answer comes on top."""
    default = DEFAULT_OUTPUT * (2 if thinking and thinking["type"] != "disabled" else 1)
    asked = sampling.max_tokens or endpoint.max_output_tokens or default
    budget = (thinking or {}).get("budget_tokens", 0)
    return asked if asked > budget else asked + int(budget)


def _thinking(endpoint: Endpoint, turns: list[Turn], sampling: Sampling) -> dict[str, Any]:
    knob = sampling.reasoning_effort or endpoint.thinking
    if knob is None or knob is False:
        return {}  # the model's own default: some always think, and refuse to be told not to
    if knob == "disabled":
        return {"thinking": {"type": "disabled"}}
    if isinstance(knob, int) and knob is not True:
        budget = {"type": "enabled", "budget_tokens": max(1024, knob)}
        return {"thinking": budget} if continues_thinking(turns) else {}
    adaptive: dict[str, Any] = {"thinking": {"type": "adaptive", "display": "summarized"}}
    return adaptive | ({"output_config": {"effort": knob}} if knob in EFFORTS else {})


def _sampling(endpoint: Endpoint, sampling: Sampling, thinking: dict[str, Any] | None) -> dict[str, float]:
    if is_anthropic(endpoint) or (thinking and thinking["type"] != "disabled"):
        return {}
    asked = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    return {name: value for name, value in asked.items() if value is not None and value != 1.0}


def _tool(schema: dict[str, Any]) -> dict[str, Any]:
    function = schema["function"]
    parameters = function.get("parameters") or {}
    tool = {"name": function["name"], "input_schema": {"type": "object", "properties": {}, **parameters}}
    return tool | ({"description": function["description"]} if function.get("description") else {})
