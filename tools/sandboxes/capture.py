"""What is kept of a stream that may be endless: its beginning and its end."""

from __future__ import annotations

from collections import deque

from tools.sandboxes.base import Output

LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8."""


class Capture:
    """Takes a stream's bytes as they come, in constant memory.

    Args:
        limit: Bytes that are kept, half from the beginning, half from the end.
    """

    def __init__(self, limit: int) -> None:
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.size = 0

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        if missing := self._head_limit - len(self._head):
            self._head += data[:missing]
            data = data[missing:]
        if not data:
            return
        if len(data) > self._tail_limit:
            data = data[len(data) - self._tail_limit :]
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    def output(self) -> Output:
        """What was kept; where something is missing, a mark says how many bytes, and no character is cut."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if self.size <= len(head) + len(tail):
            return Output(head + tail, self.size)
        tail = tail[len(tail) - self._tail_limit :]
        head, tail = _without_cut_end(head), _without_cut_beginning(tail)
        mark = f"\n[{self.size - len(head) - len(tail)} bytes left out]\n".encode()
        return Output(head + mark + tail, self.size, truncated=True)


def _without_cut_end(data: bytes) -> bytes:
    """Without the beginning of a character at its end."""
    for back in range(1, min(LONGEST_CHARACTER, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:  # the first byte of a character of this many
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if back < length else data
    return data


def _without_cut_beginning(data: bytes) -> bytes:
    """Without the rest of a character at its beginning."""
    start = 0
    while start < min(LONGEST_CHARACTER - 1, len(data)) and 0x80 <= data[start] < 0xC0:
        start += 1
    return data[start:]
