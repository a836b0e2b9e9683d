"""Events of the Messages API -> one assistant message.

Events are taken as the wire has them, as plain dicts: compatible servers leave out, repeat and reorder what
the SDK's own types promise.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from environments.policies.anthropic.block import Block, as_text, gap_before
from environments.policies.anthropic.events import counted
from environments.policies.anthropic.history import PROVIDER, THINKING
from environments.policies.base import (
    Completion,
    FinishReason,
    OnDelta,
    ReasoningDelta,
    TextDelta,
    Usage,
)
from environments.policies.call_ids import fresh_id
from environments.policies.endpoints.answer_limit import MOST_PARTS, too_many_parts
from environments.policies.endpoints.errors import CutStream, StreamedError
from environments.policies.endpoints.token_estimate import TextCount
from rl_cli.core.messages import ToolCall, assistant, tool_call

STOPS = {
    "max_tokens": FinishReason.LENGTH,
    "length": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "pause_turn": FinishReason.LENGTH,
    "refusal": FinishReason.CONTENT_FILTER,
    "content_filter": FinishReason.CONTENT_FILTER,
    "safety": FinishReason.CONTENT_FILTER,
}
"""Stop reasons that say more than the content: all others mean that the message is complete."""


@dataclass
class MessageBuilder:
    """Puts one message together; feed it every event, then ask for the completion."""

    on_delta: OnDelta | None = None
    taken_ids: Collection[str] = ()
    """Ids of calls that the conversation already has."""
    stop_reason: str | None = None
    usage: Usage | None = None
    """Counts so far; None where the server never said."""
    count: TextCount = field(default_factory=TextCount)
    """The text of the message so far, thinking and arguments included."""
    stopped: bool = False
    """Whether the final event came."""
    _blocks: list[Block] = field(default_factory=list)
    _by_index: dict[str, Block] = field(default_factory=dict)
    _delta_seen: bool = False

    @property
    def complete(self) -> bool:
        """Whether the message is whole, with or without its final event."""
        closed = self._delta_seen and bool(self._blocks) and all(block.stopped for block in self._blocks)
        return bool(self.stop_reason) or self.stopped or closed

    def feed(self, event: Any) -> None:
        """Takes in one event; those of unknown types mean nothing.

        Raises:
            StreamedError: It reports an error.
            CutStream: It is no event.
        """
        if not isinstance(event, dict):
            raise CutStream("the stream holds something that is no event")
        kind, index = event.get("type"), event.get("index")
        if kind == "error" or (kind not in EVENTS and event.get("error")):
            raise StreamedError(event)
        if kind == "message_start":
            self.usage = counted(self.usage, _dict(event.get("message")).get("usage"))
        elif kind == "content_block_start":
            self._open(index, _dict(event.get("content_block")))
        elif kind == "content_block_delta":
            self._extend(index, _dict(event.get("delta")))
        elif kind == "content_block_stop":
            if block := self._at(index):
                block.stopped = True
        elif kind == "message_delta":
            self._delta_seen = True
            self.stop_reason = _dict(event.get("delta")).get("stop_reason") or self.stop_reason
            self.usage = counted(self.usage, event.get("usage"))
        elif kind == "message_stop":
            self.stopped = True

    def cut(self) -> None:
        """The rest is not taken: it is longer than it may be. What the server counted so far is not all."""
        self.stop_reason, self.usage = "max_tokens", None

    def completion(self) -> Completion:
        """The message as far as it came; whether that is all of it, `complete` tells.

        Calls that the token limit cut are left out of the message and told in `call_errors`.
        """
        named = STOPS.get(str(self.stop_reason).casefold())
        paused = self.stop_reason == "pause_turn"
        errors = self._drop_unusable(cut=named is FinishReason.LENGTH and not paused)
        calls = self._calls()
        text, reasoning = self._said("text"), self._said("thinking")
        message = assistant(text or None, calls)
        if reasoning:
            message["reasoning"] = reasoning
        if any(block.type in THINKING for block in self._blocks):
            message["provider_state"] = {PROVIDER: {"content": [block.kept() for block in self._blocks]}}
        if named is None or (paused and calls):
            named = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        return Completion(message, named, self.usage or Usage(requests=1), call_errors=errors)

    def _open(self, index: Any, content: dict[str, Any]) -> Block:
        if len(self._blocks) >= MOST_PARTS:
            raise too_many_parts()
        kind = content.get("type")
        block = Block(str(kind), signature=as_text(content.get("signature")))
        if kind == "tool_use":
            block.id, block.name = as_text(content.get("id")), as_text(content.get("name")).strip()
            block.input = as_text(content.get("input"))
        self._blocks.append(block)
        self._by_index[str(index)] = block
        self._say(block, as_text(content.get({"redacted_thinking": "data"}.get(block.type, block.type))))
        return block

    def _extend(self, index: Any, delta: dict[str, Any]) -> None:
        kind = str(delta.get("type"))
        wanted = DELTAS.get(kind)
        if wanted is None:
            return
        block_type, key = wanted
        block = self._at(index)
        if block is not None and block.type not in KNOWN:
            return
        if block is None or block.type != block_type:  # its start was lost
            block = self._open(index, {"type": block_type})
        if key == "signature":
            block.signature += as_text(delta.get(key))
        else:
            self._say(block, as_text(delta.get(key)))

    def _at(self, index: Any) -> Block | None:
        if index is None:
            return self._blocks[-1] if self._blocks else None
        return self._by_index.get(str(index))

    def _say(self, block: Block, text: str) -> None:
        if not text:
            return
        if not block.text:
            block.gap = gap_before(block, self._blocks)
            shown = block.gap + text
        else:
            shown = text
        block.text += text
        self.count.add(text)
        if self.on_delta and block.type == "text":
            self.on_delta(TextDelta(shown))
        elif self.on_delta and block.type == "thinking":
            self.on_delta(ReasoningDelta(shown))

    def _said(self, kind: str) -> str:
        return "".join(block.gap + block.text for block in self._blocks if block.type == kind)

    def _drop_unusable(self, cut: bool) -> list[str]:
        errors = []
        for block in list(self._blocks):
            reason = None
            if block.type == "tool_use" and not block.name:
                reason = "a call came without the name of a tool"
            elif block.type == "tool_use" and cut and not self._whole(block):
                reason = f"the call of {block.name} was cut by the token limit"
            if reason:
                errors.append(reason)
            if reason or block.type not in KNOWN:
                self._blocks.remove(block)
        return errors

    def _whole(self, block: Block) -> bool:
        """Whether a call of a message that hit the token limit surely has all its arguments."""
        if block is self._blocks[-1] and not block.text.strip():
            return False  # nothing was written yet, or the server parsed what there was
        try:
            return isinstance(json.loads(block.arguments), dict)
        except (ValueError, RecursionError):
            return False

    def _calls(self) -> list[ToolCall]:
        calls: list[ToolCall] = []
        taken = set(self.taken_ids)
        for block in [block for block in self._blocks if block.type == "tool_use"]:
            block.id = fresh_id(block.id, taken)
            taken.add(block.id)
            calls.append(tool_call(block.id, block.name, block.arguments))
        return calls


KNOWN = ("text", "tool_use", *THINKING)
"""Types of blocks that mean something here; others come only from tools on the server's side."""
EVENTS = (
    "message_start",
    "message_delta",
    "message_stop",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
)
DELTAS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("thinking", "signature"),
    "input_json_delta": ("tool_use", "partial_json"),
}
"""Type of a delta -> type of the block it belongs to, and the key of its piece."""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
