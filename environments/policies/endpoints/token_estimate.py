"""How many tokens a text will be, before anybody has counted: 3.5 ASCII characters each, else 1 character."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ASCII_PER_TOKEN = 3.5
PER_MESSAGE = 6
"""What a template puts around a message."""


def text_tokens(text: str) -> int:
    """Estimated tokens of `text`; at least 1 where it is not empty."""
    if text.isascii():
        return -int(-len(text) // ASCII_PER_TOKEN)
    wide = sum(1 for c in text if c >= "\x80")
    return wide - int(-(len(text) - wide) // ASCII_PER_TOKEN)


@dataclass
class TextCount:
    """Counts a text that comes in pieces."""

    characters: int = 0
    wide: int = 0
    """Of them: not ASCII."""

    def add(self, piece: str) -> None:
        self.characters += len(piece)
        if not piece.isascii():
            self.wide += sum(1 for c in piece if c >= "\x80")

    @property
    def tokens(self) -> int:
        """Estimated, as `text_tokens` does of the whole."""
        return self.wide - int(-(self.characters - self.wide) // ASCII_PER_TOKEN)


def message_tokens(message: Mapping[str, Any]) -> int:
    """Estimated tokens of a message: content, reasoning, calls, or what its endpoint wants back instead."""
    texts = [message.get("content") or "", message.get("reasoning") or ""]
    for call in message.get("tool_calls") or ():
        texts += [call["id"], call["function"]["name"], call["function"]["arguments"]]
    state = message.get("provider_state")
    opaque = text_tokens(json.dumps(state, ensure_ascii=False)) if state else 0
    return PER_MESSAGE + max(opaque, sum(text_tokens(text) for text in texts))


def request_tokens(messages: Iterable[Mapping[str, Any]], tools: Sequence[dict[str, Any]] = ()) -> int:
    """Estimated tokens of a prompt: its messages and the tools that are offered."""
    schemas = text_tokens(json.dumps(list(tools), ensure_ascii=False)) if tools else 0
    return schemas + sum(message_tokens(message) for message in messages)
