"""Rows that say what an earlier row said, exactly or nearly.

A row is compared by its messages without the ids of calls. Near ones are found by MinHash over word shingles
with locality-sensitive hashing (datasketch; https://en.wikipedia.org/wiki/MinHash), and then held to the
threshold. Memory: about 100 bytes a row for exact ones, 6 KB a row for near ones.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rl_cli.core.messages import Message

if TYPE_CHECKING:
    from datasketch import MinHash

SHINGLE = 5
"""Words of a shingle."""
NEAR = 0.85
"""The usual threshold."""
PERMUTATIONS = 128
"""The similarity is estimated to within about 1 / sqrt(PERMUTATIONS)."""
FINEST = 0.9
"""The index cannot tell higher thresholds apart."""
_WORDS = re.compile(r"[\u2e80-\uffdc]|[^\W\u2e80-\uffdc]+|[^\w\s]")
"""A word, a sign, or a character of a script that is written without blanks."""


class Duplicates:
    """Tells, row after row, which were there before.

    Args:
        near: From which similarity on rows count as the same: the share of shingles that they have in common,
            between 0 and 1. None: only those that are equal.

    Raises:
        ModuleNotFoundError: `near` needs datasketch, of the extra `data`.
    """

    def __init__(self, near: float | None = None) -> None:
        self.counts: Counter[str] = Counter()
        """`exact` and `near`: how many were found so far."""
        self._seen: set[bytes] = set()
        self._near = _Near(near) if near is not None else None

    def is_new(self, messages: Sequence[Message]) -> bool:
        """Whether no earlier row was like it; from then on it is an earlier one.

        Args:
            messages: Canonical.
        """
        digest = hashlib.blake2b(_content(messages), digest_size=16).digest()
        kind: Literal["exact", "near"] | None = None
        if digest in self._seen:
            kind = "exact"
        elif self._near and not self._near.add(messages):
            kind = "near"
        self._seen.add(digest)
        self.counts.update([kind] if kind else [])
        return kind is None


class _Near:
    def __init__(self, threshold: float) -> None:
        from datasketch import MinHashLSH

        self._threshold = threshold
        # What it finds is held to the threshold below, so that it should rather find too much.
        least = min(threshold, FINEST)
        self._index = MinHashLSH(threshold=least, num_perm=PERMUTATIONS, weights=(0.1, 0.9))
        self._hashes: list[MinHash] = []

    def add(self, messages: Sequence[Message]) -> bool:
        """Keeps it if nothing like it is kept."""
        from datasketch import MinHash

        made = MinHash(num_perm=PERMUTATIONS)
        made.update_batch(sorted(set(_shingles(messages))))
        if any(self._hashes[i].jaccard(made) >= self._threshold for i in self._index.query(made)):
            return False
        self._index.insert(len(self._hashes), made)
        self._hashes.append(made)
        return True


def _content(messages: Sequence[Message]) -> bytes:
    said: list[Any] = [
        (
            message["role"],
            message["content"] or "",
            message.get("reasoning", ""),
            [
                (call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls", ())
            ],
            message.get("name", ""),
        )
        for message in messages
    ]
    return json.dumps(said).encode()


def _shingles(messages: Sequence[Message]) -> Iterator[bytes]:
    words = [word for message in messages for word in _words(message)]
    for at in range(max(1, len(words) - SHINGLE + 1)):
        yield " ".join(words[at : at + SHINGLE]).encode("utf-8", "replace")


def _words(message: Message) -> Iterator[str]:
    yield message["role"]
    calls = (call["function"] for call in message.get("tool_calls", ()))
    parts = [message.get("reasoning", ""), message["content"] or ""]
    for part in [*parts, *(text for call in calls for text in (call["name"], call["arguments"]))]:
        yield from _WORDS.findall(part.casefold())
