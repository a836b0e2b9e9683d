"""Bytes of a stream of server-sent events -> the data of each event, as soon as it is complete.

Unlike the SDK's decoder it tells whether [DONE] came, takes a last event that no empty line follows, and does
not give up over bytes that are not UTF-8.
"""

from __future__ import annotations

import codecs

DONE = "[DONE]"


class EventStream:
    """Fed with bytes in any pieces."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        self._line = ""
        self._data: list[str] = []
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
        lines = (self._line + text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self._line = lines.pop()
        return [data for line in lines if (data := self._event(line)) is not None]

    def _event(self, line: str) -> str | None:
        """The data of the event that `line` ends."""
        if not line:
            data, self._data = "\n".join(self._data), []
            return data if data.strip() else None
        name, _, value = line.partition(":")
        if name in ("data", "error"):  # "error:" is how old servers of llama.cpp report one
            self._data.append(value.removeprefix(" "))
        return line if line.startswith("{") and not self._data else None  # lines of JSON without "data:"
