"""The body of an answer of the Messages API -> its events, streamed or not."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

from environments.policies.base import PolicyError, Usage
from environments.policies.endpoints.errors import CutStream
from environments.policies.endpoints.sse import DONE, EventStream

ELSEWHERE = "what answers there is not the Messages API: check base_url and api of the endpoint"


async def events(response: Any) -> AsyncGenerator[Any, None]:
    """The events of an answer, decoded; those of one that was not streamed, whatever was asked for.

    Raises:
        PolicyError: Something else than this API answers here.
        CutStream: It holds something that is no event.
    """
    kind = response.headers.get("content-type", "")
    if "html" in kind:
        raise PolicyError(ELSEWHERE)
    if "json" in kind:
        try:
            body = json.loads(await response.read())
        except RecursionError as error:
            raise CutStream("it is nested too deeply") from error
        if not isinstance(body, dict) or "choices" in body:
            raise PolicyError(ELSEWHERE)
        for event in events_of(body):
            yield event
        return
    stream = EventStream()
    async for piece in response.iter_bytes():
        for data in stream.feed(piece):
            yield _event(data)
    for data in stream.end():
        yield _event(data)


def _event(data: str) -> Any:
    if data.strip() == DONE:
        return {"type": "message_stop"}
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CutStream("the stream holds something that is no event") from error


def events_of(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A whole message as the events that would have streamed it."""
    if message.get("error"):
        yield message
        return
    yield {"type": "message_start", "message": {"usage": message.get("usage")}}
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
    for index, block in enumerate(blocks):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": {"stop_reason": message.get("stop_reason")}}


def counted(before: Usage | None, said: Any) -> Usage | None:
    """The counts so far. They are cumulative: what a later event says replaces what stood before."""
    if not isinstance(said, dict):
        return before
    counts = {k: v for k, v in said.items() if isinstance(v, int) and not isinstance(v, bool)}
    if not counts:
        return before
    old = before or Usage()
    read = counts.get("cache_read_input_tokens", old.cached_tokens)
    written = counts.get("cache_creation_input_tokens", old.cache_write_tokens)
    fresh = counts.get("input_tokens", old.input_tokens - old.cached_tokens - old.cache_write_tokens)
    output = counts.get("output_tokens", old.output_tokens)
    return Usage(fresh + read + written, output, read, written, requests=1)
