"""Messages as Anthropic sends them: events, bodies, error bodies, headers, signatures of thinking."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

from tests.wire.openai_wire import arguments, output_of, pieces
from tests.wire.replies import Call, Refusal, Reply, Tokens

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
FINISH = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
"""A reply may name its finish as Chat Completions do."""
_SECRET = b"only this server signs with it"


def sign(thinking: str) -> str:
    """The signature of a thinking block: it fits this text and no other."""
    return base64.b64encode(
        hmac.digest(_SECRET, thinking.encode("utf-8", "surrogatepass"), "sha256")
    ).decode()


def seal(number: int) -> str:
    """The data of a redacted_thinking block."""
    return f"{number}." + sign(f"redacted {number}")


def is_sealed(data: str) -> bool:
    number, _, _ = data.partition(".")
    return number.isdigit() and data == seal(int(number))


def event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def events(reply: Reply, request: dict[str, Any], number: int) -> list[bytes]:
    """The stream, one entry per server-sent event."""
    used = usage_of(reply)
    start = _frame(request, number) | {"content": [], "usage": used | {"output_tokens": 1}}
    stream: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks(reply, number)):
        empty, deltas = _streamed(block, reply.piece)
        stream.append({"type": "content_block_start", "index": index, "content_block": empty})
        if index == 0:
            stream.append({"type": "ping"})
        stream += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        stream.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": finish(reply), "stop_sequence": None}
    counted = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    stream.append({"type": "message_delta", "delta": delta, "usage": {key: used[key] for key in counted}})
    if reply.final:
        stream.append({"type": "message_stop"})
    return list(map(event, stream))


def body(reply: Reply, request: dict[str, Any], number: int) -> dict[str, Any]:
    """The answer without streaming."""
    content = [
        {**block, "input": json.loads(block["input"] or "{}")} if block["type"] == "tool_use" else block
        for block in blocks(reply, number)
    ]
    return _frame(request, number) | {
        "content": content,
        "stop_reason": finish(reply),
        "usage": usage_of(reply),
    }


def blocks(reply: Reply, number: int) -> list[dict[str, Any]]:
    """The content; a tool_use block's input is still JSON text."""
    content: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": sign(reply.reasoning)})
    if reply.redacted:
        content.append({"type": "redacted_thinking", "data": seal(number)})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.calls):
        content.append(
            {
                "type": "tool_use",
                "id": call_id(call, number, index),
                "name": call.name,
                "input": arguments(call),
            }
        )
    return content


def _streamed(block: dict[str, Any], size: int) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The block as it starts, and the deltas that fill it."""
    match block["type"]:
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": p} for p in pieces(block["thinking"], size)]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, iter(deltas)
        case "text":
            return {**block, "text": ""}, (
                {"type": "text_delta", "text": p} for p in pieces(block["text"], size)
            )
        case "tool_use":
            parts = ["", *pieces("" if block["input"] == "{}" else block["input"], size)]
            return {**block, "input": {}}, ({"type": "input_json_delta", "partial_json": p} for p in parts)
    return block, iter(())


def error_body(refusal: Refusal, number: int) -> dict[str, Any]:
    kind = refusal.type or ERROR_TYPES.get(refusal.status, "api_error")
    return {
        "type": "error",
        "error": {"type": kind, "message": refusal.message},
        "request_id": request_id(number),
    }


def error_event(refusal: Refusal, number: int) -> bytes:
    return event(error_body(refusal, number))


def headers(number: int) -> dict[str, str]:
    return {
        "request-id": request_id(number),
        "anthropic-organization-id": "00000000-0000-4000-8000-000000000000",
        "anthropic-ratelimit-requests-limit": "4000",
        "anthropic-ratelimit-requests-remaining": "3999",
        "anthropic-ratelimit-requests-reset": "2030-01-01T00:00:00Z",
    }


def models(names: list[str]) -> dict[str, Any]:
    rows = [
        {"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"}
        for name in names
    ]
    return {
        "data": rows,
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }


def finish(reply: Reply) -> str:
    if reply.finish:
        return FINISH.get(reply.finish, reply.finish)
    return "tool_use" if reply.calls else "end_turn"


def usage_of(reply: Reply) -> dict[str, Any]:
    """Here `input_tokens` leaves out what was read from or written to the cache."""
    used = reply.usage or Tokens(0, output_of(reply))
    return {
        "input_tokens": used.input - used.cached - used.cache_write,
        "cache_creation_input_tokens": used.cache_write,
        "cache_read_input_tokens": used.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": used.output,
        "service_tier": "standard",
    }


def call_id(call: Call, number: int, index: int) -> str:
    return call.id if call.id is not None else "toolu_01" + _hash(number, index)[:22]


def request_id(number: int) -> str:
    return "req_011C" + _hash("request", number)[:20]


def _frame(request: dict[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": "msg_01" + _hash("message", number)[:22],
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
