"""What a test tells the wire server to answer, the same for both APIs.

A `Reply` is one answer of the model; `Refusal` an HTTP error; `Raw` bytes as they are. The two `*_wire`
modules turn them into what each API really sends.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

FaultKind = Literal["cut", "end", "reset", "hang", "garbage", "error"]


@dataclass(frozen=True)
class Call:
    """One tool call.

    Arguments that are a text are sent as they are, valid JSON or not (Messages without streaming can only
    send objects).
    """

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str | None = None
    """None: one as the API makes them, never the same twice."""


@dataclass(frozen=True)
class Tokens:
    """What the answer says it used; `input` is the whole prompt, cached or not."""

    input: int
    output: int
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class Refusal:
    """An HTTP error with the body that the API wraps around it."""

    status: int
    message: str
    type: str | None = None
    """None: what the API says with this status."""
    code: str | None = None
    """Chat Completions only."""
    param: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    """Instead of the usual body: an object, or a text that is sent as it is (an HTML page of a proxy)."""
    delay: float = 0.0


@dataclass(frozen=True)
class Fault:
    """What goes wrong while a reply is sent.

    cut: the connection closes in the middle of the body. end: the body ends properly, what is left of it is
    never sent. reset: TCP reset. hang: nothing more, until the client goes. garbage: one event that is no
    JSON, then on. error: an error event (`refusal`), then the end.
    """

    kind: FaultKind
    after: int | None = None
    """Events sent before it; negative counts from the end, None is before the status line. Without streaming
    any number means half of the body."""
    refusal: Refusal | None = None


@dataclass(frozen=True)
class Reply:
    """One answer of the model."""

    text: str | None = None
    calls: tuple[Call, ...] | list[Call] = ()
    reasoning: str | None = None
    redacted: bool = False
    """Messages only: a redacted_thinking block after the thinking."""
    finish: str | None = None
    """As the API writes it; None: the right one."""
    usage: Tokens | None = None
    """None: estimated from the request, and from what a prompt cache would hold of it."""
    reasoning_field: str = "reasoning_content"
    """Chat Completions only: where the reasoning stands ("reasoning" at OpenRouter)."""
    piece: int = 6
    """Characters per delta."""
    delay: float = 0.0
    """Seconds before the first byte."""
    gap: float = 0.0
    """Seconds between events."""
    final: bool = True
    """False: without [DONE] / message_stop."""
    fault: Fault | None = None
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """A body as it is, for shapes that no rule makes."""

    body: bytes
    content_type: str = "text/event-stream; charset=utf-8"
    status: int = 200
    write_size: int | None = None
    """Bytes per TCP write; None: all at once."""
    cut: bool = False
    """The connection closes after the body, as if more should have come."""
    headers: dict[str, str] = field(default_factory=dict)


Answer = Reply | Refusal | Raw
