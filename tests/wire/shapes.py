"""The awkward shapes in shapes_*.jsonl, made ready to be sent.

One JSON object a line: `id`, `api`, `note`, `tools` (names that are offered), what the server sends, and
`expect`. It sends one of: `events` (each one server-sent event: an object, or a text as it is; for Chat
Completions {"delta", "finish_reason"} stands for a whole chunk, and [DONE] follows unless `final` is false),
`raw` or `raw_b64` (the bytes of the body), `body` (JSON, not streamed). With it `status`, `headers`,
`content_type`, `write_size` (bytes per TCP write), `cut` (the connection breaks after it), `then` (the text
that a repeated request gets) and `allowed` (fields that this server takes back beyond the SDK's types).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from tests.wire import anthropic_wire, openai_wire
from tests.wire.replies import Answer, Raw, Reply

Shape = dict[str, Any]
FOLDER = Path(__file__).parent
JSON, SSE = "application/json", "text/event-stream; charset=utf-8"


def load() -> list[Shape]:
    """All shapes, in the order of their files."""
    lines = (line for file in sorted(FOLDER.glob("shapes*.jsonl")) for line in file.open(encoding="utf-8"))
    return [json.loads(line) for line in lines if line.strip()]


def is_streamed(shape: Shape) -> bool:
    """Whether the policy asks for a stream."""
    return bool(shape.get("stream", "body" not in shape))


def answers(shape: Shape) -> list[Answer]:
    """What the server says to the first request, and to the one that repeats it."""
    raw = Raw(
        _bytes(shape),
        content_type=shape.get("content_type", JSON if "body" in shape else SSE),
        status=shape.get("status", 200),
        write_size=shape.get("write_size"),
        headers=shape.get("headers", {}),
        cut=shape.get("cut", False),
    )
    return [raw, *([Reply(shape["then"])] if "then" in shape else [])]


def _bytes(shape: Shape) -> bytes:
    if "raw" in shape:
        return str(shape["raw"]).encode()
    if "raw_b64" in shape:
        return base64.b64decode(shape["raw_b64"])
    if "body" in shape:
        return json.dumps(shape["body"]).encode()
    is_openai = shape["api"] == "openai"
    events = [_openai(event) if is_openai else _anthropic(event) for event in shape["events"]]
    ends = [openai_wire.DONE] if is_openai and shape.get("final", True) else []
    return b"".join(events + ends)


def _openai(event: dict[str, Any] | str) -> bytes:
    if isinstance(event, str):
        return event.encode()
    if "delta" in event:
        frame = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        event = frame | {"choices": [{"index": 0, "finish_reason": None, **event}]}
    return openai_wire.event(event)


def _anthropic(event: dict[str, Any] | str) -> bytes:
    return event.encode() if isinstance(event, str) else anthropic_wire.event(event)
