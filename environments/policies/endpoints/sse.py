"""Bytes of a stream of server-sent events -> the data of each event, as soon as it is complete.

Unlike the SDK's decoder it tells whether [DONE] came, takes a last event that no empty line follows, and does
not give up over bytes that are not UTF-8.
"""

from __future__ import annotations

import codecs

from environments.policies.base import PolicyError

DONE = "[DONE]"
MOST_CHARACTERS = 8_000_000
"""Of one event; a server that sends more would fill the memory."""


class EventStream:
    """Fed with bytes in any pieces."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._line_size = self._data_size = 0
        self._after_return = False

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that end in `piece`."""
        return self._take(self._decode(piece))

    def end(self) -> list[str]:
        """The data of what is left, once there are no more bytes."""
        return self._take(self._decode(b"", final=True) + "\n\n")

    def _take(self, text: str) -> list[str]:
        if self._after_return and text:
            text = text.removeprefix("\n")  # the second half of "\r\n"
            self._after_return = False
        self._after_return = self._after_return or text.endswith("\r")
        first, *others = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._hold(first)
        found = []
        for other in others:
            line = "".join(self._line)
            self._line, self._line_size = [], 0
            if (data := self._event(line)) is not None:
                found.append(data)
            self._hold(other)
        return found

    def _hold(self, text: str) -> None:
        """A piece of the line that has not ended. It is joined once, however small the pieces are."""
        self._line.append(text)
        self._line_size += len(text)
        if self._line_size + self._data_size > MOST_CHARACTERS:
            raise PolicyError(f"an event of more than {MOST_CHARACTERS // 1_000_000} MB came: given up")

    def _event(self, line: str) -> str | None:
        """The data of the event that `line` ends."""
        if not line:
            data = "\n".join(self._data)
            self._data, self._data_size = [], 0
            return data if data.strip() else None
        name, _, value = line.partition(":")
        if name in ("data", "error"):  # "error:" is how old servers of llama.cpp report one
            self._data.append(value.removeprefix(" "))
            self._data_size += len(value) + 1
        return line if line.startswith("{") and not self._data else None  # lines of JSON without "data:"
