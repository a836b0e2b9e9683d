"""One content block of a message of the Messages API, as far as it has been streamed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(eq=False)
class Block:
    type: str
    text: str = ""
    """Text, thinking, the arguments' JSON text in pieces, or redacted data."""
    gap: str = ""
    """What stands between this text and the one before, where people read both."""
    signature: str = ""
    id: str = ""
    name: str = ""
    input: str = ""
    """Arguments that stood in the block's start; pieces that follow replace them."""
    stopped: bool = False

    @property
    def arguments(self) -> str:
        """JSON text, as the model wrote it; `{}` where it wrote nothing."""
        text = self.text if self.text.strip() else self.input
        return "{}" if text.strip() in ("", "null") else text

    def kept(self) -> dict[str, Any]:
        """What the endpoint wants back; of a call only the place, the rest is in the message."""
        if self.type == "tool_use":
            return {"type": "tool_use", "id": self.id}
        if self.type == "thinking":
            return {"type": "thinking", "thinking": self.text, "signature": self.signature}
        return {"type": self.type, "text" if self.type == "text" else "data": self.text}


def gap_before(block: Block, blocks: Sequence[Block]) -> str:
    """A blank line where `block` begins a text after something that followed another text of its kind.

    Neighbouring texts belong together (servers split them to cite); neighbouring thoughts do not.
    """
    spoken = [b for b in blocks if b is block or b.text or b.type == "tool_use"]
    at = spoken.index(block)
    before = next((n for n in range(at - 1, -1, -1) if spoken[n].type == block.type), None)
    if before is None or (block.type == "text" and before == at - 1):
        return ""
    return "" if spoken[before].text.endswith("\n") else "\n\n"


def as_text(value: Any) -> str:
    """Text where text belongs; an object that a server already parsed becomes its JSON text again."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) and value else ""
