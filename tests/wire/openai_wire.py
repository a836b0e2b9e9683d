"""Chat Completions as OpenAI sends them: chunks, bodies, error bodies, headers."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from typing import Any

from tests.wire.replies import Call, Refusal, Reply, Tokens

ERROR_TYPES = {
    401: "invalid_request_error",
    403: "invalid_request_error",
    404: "invalid_request_error",
    429: "requests",
    500: "server_error",
    503: "server_error",
}
DONE = b"data: [DONE]\n\n"


def event(data: Any) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def events(reply: Reply, request: dict[str, Any], number: int) -> list[bytes]:
    """The stream, one entry per server-sent event."""
    with_usage = bool((request.get("stream_options") or {}).get("include_usage"))
    frame: dict[str, Any] = {
        "id": _id("chatcmpl-", number),
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": request["model"],
        "service_tier": "default",
        "system_fingerprint": "fp_5ca1ab1e00",
    }
    usage: dict[str, Any] = {"usage": None} if with_usage else {}
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        for delta in _deltas(reply, number)
    ]
    choices.append({"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish(reply)})
    chunks = [{**frame, "choices": [choice], **usage} for choice in choices]
    if with_usage:
        chunks.append({**frame, "choices": [], "usage": usage_of(reply)})
    return [*map(event, chunks), *([DONE] if reply.final else [])]


def _deltas(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    """The role stands in the first delta only; a call's id, type and name in the first of that call."""
    first: dict[str, Any] = {"role": "assistant", "content": None if reply.calls else "", "refusal": None}
    if reply.text or reply.reasoning or not reply.calls:
        yield first | {"content": ""}
        first = {}
    for piece in pieces(reply.reasoning or "", reply.piece):
        yield {reply.reasoning_field: piece}
    for piece in pieces(reply.text or "", reply.piece):
        yield {"content": piece}
    for index, call in enumerate(reply.calls):
        head = {"name": call.name, "arguments": ""}
        yield first | {
            "tool_calls": [
                {"index": index, "id": call_id(call, number, index), "type": "function", "function": head}
            ]
        }
        first = {}
        for piece in pieces(arguments(call), reply.piece):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def body(reply: Reply, request: dict[str, Any], number: int) -> dict[str, Any]:
    """The answer without streaming."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
    if reply.reasoning is not None:
        message[reply.reasoning_field] = reply.reasoning
    if reply.calls:
        message["tool_calls"] = [
            {
                "id": call_id(call, number, index),
                "type": "function",
                "function": {"name": call.name, "arguments": arguments(call)},
            }
            for index, call in enumerate(reply.calls)
        ]
    return {
        "id": _id("chatcmpl-", number),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish(reply)}],
        "usage": usage_of(reply),
        "service_tier": "default",
        "system_fingerprint": "fp_5ca1ab1e00",
    }


def error_body(refusal: Refusal, number: int) -> dict[str, Any]:
    kind = refusal.type or ERROR_TYPES.get(refusal.status, "invalid_request_error")
    return {"error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": refusal.code}}


def error_event(refusal: Refusal, number: int) -> bytes:
    return event(error_body(refusal, number))


def headers(number: int) -> dict[str, str]:
    return {
        "x-request-id": _id("req_", number),
        "openai-version": "2020-10-01",
        "openai-processing-ms": "12",
        "x-ratelimit-limit-requests": "10000",
        "x-ratelimit-remaining-requests": "9999",
        "x-ratelimit-reset-requests": "6ms",
    }


def models(names: list[str]) -> dict[str, Any]:
    rows = [{"id": name, "object": "model", "created": 1700000000, "owned_by": "system"} for name in names]
    return {"object": "list", "data": rows}


def finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def output_of(reply: Reply) -> int:
    """Tokens of the answer, estimated."""
    return sum(map(len, [reply.text or "", reply.reasoning or "", *map(arguments, reply.calls)])) // 4 + 1


def usage_of(reply: Reply) -> dict[str, Any]:
    used = reply.usage or Tokens(0, output_of(reply))
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": used.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def arguments(call: Call) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def call_id(call: Call, number: int, index: int) -> str:
    return call.id if call.id is not None else _id("call_", number, index, length=24)


def pieces(text: str, size: int) -> Iterator[str]:
    return (text[i : i + size] for i in range(0, len(text), size))


def _id(prefix: str, *parts: int, length: int = 29) -> str:
    return prefix + hashlib.sha256(repr((prefix, parts)).encode()).hexdigest()[:length]
