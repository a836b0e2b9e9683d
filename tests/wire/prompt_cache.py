"""What the two APIs would have found in their prompt caches, so that tests can see whether caching works.

Messages cache what a request marks: the prompt up to each cache_control; a later request reads the longest
marked prompt that it begins with, looked for at its own marks and up to 20 blocks before them. Chat
Completions cache by themselves: any common beginning of at least 1,024 tokens, in steps of 128. Not covered:
that caches expire, and Messages' least size.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator
from typing import Any

from tests.wire.replies import Tokens

LOOK_BACK = 20
LEAST, STEP = 1024, 128
CHARACTERS_PER_TOKEN = 4


class PromptCache:
    """Of one server; both APIs may share it."""

    def __init__(self) -> None:
        self._marked: set[str] = set()
        self._prompts: deque[str] = deque(maxlen=8)

    def count(self, api: str, body: dict[str, Any], output: int) -> Tokens:
        """What this request used; what it marks can be read from now on."""
        return self._of_messages(body, output) if api == "anthropic" else self._of_chat(body, output)

    def _of_chat(self, body: dict[str, Any], output: int) -> Tokens:
        prompt = json.dumps([body.get("tools"), body["messages"]])
        common = max((_common(prompt, other) for other in self._prompts), default=0)
        cached = common // CHARACTERS_PER_TOKEN // STEP * STEP
        self._prompts.append(prompt)
        return Tokens(len(prompt) // CHARACTERS_PER_TOKEN, output, cached if cached >= LEAST else 0)

    def _of_messages(self, body: dict[str, Any], output: int) -> Tokens:
        hashed, size = hashlib.sha256(), 0
        sizes: list[int] = []
        hashes: list[str] = []
        marks: list[int] = []
        for number, block in enumerate(_blocks(body)):
            text = json.dumps({k: v for k, v in block.items() if k != "cache_control"}, sort_keys=True)
            hashed.update(text.encode())
            size += len(text)
            sizes.append(size // CHARACTERS_PER_TOKEN)
            hashes.append(hashed.hexdigest())
            if block.get("cache_control"):
                marks.append(number)
        places = {place for mark in marks for place in range(max(0, mark - LOOK_BACK), mark + 1)}
        read = max((sizes[place] for place in places if hashes[place] in self._marked), default=0)
        written = max((sizes[mark] for mark in marks), default=0)
        self._marked.update(hashes[mark] for mark in marks)
        return Tokens(sizes[-1], output, read, max(0, written - read))


def _blocks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The prompt in the order in which it is cached: tools, system, messages."""
    yield from body.get("tools", [])
    system = body.get("system", [])
    yield from [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield {**block, "role": message["role"]}


def _common(one: str, other: str) -> int:
    """Length of the common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low
