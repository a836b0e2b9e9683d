"""Packets to and from an agent, without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from tools.sandboxes.agent import protocol

_SPACE = socket.CMSG_SPACE(4)


class Channel:
    """The host's end of a link, in use by one event loop.

    Args:
        end: Non-blocking; the channel's own from now on.
        heard: Called when something can be received.
        lost: Called when nothing can be sent any more, since the other end has hung up.
    """

    def __init__(self, end: socket.socket, heard: Callable[[], None], lost: Callable[[], None]) -> None:
        self._end, self._lost = end, lost
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[tuple[bytes, list[int]]] = deque()
        self._writing = False
        """Whether the loop tells when more can be sent."""
        self._loop.add_reader(end, heard)

    @property
    def waits(self) -> bool:
        """Whether something could not be sent yet."""
        return bool(self._unsent)

    def send(self, what: int, id: int, descriptors: list[int], body: Mapping[str, Any] | None = None) -> None:
        """Sends a packet, now or later; the descriptors are closed then."""
        packet, first = protocol.packet(what, id, None if body is None else dict(body))
        self._unsent.append((packet, [*first, *descriptors]))
        if len(self._unsent) == 1:
            self._send_waiting()

    def _send_waiting(self) -> None:
        while self._unsent:
            packet, descriptors = self._unsent[0]
            try:
                socket.send_fds(self._end, [packet], descriptors)
            except BlockingIOError:
                self._loop.add_writer(self._end, self._send_waiting)
                self._writing = True
                return
            except OSError:  # the agent has ended
                self._lost()
                return
            self._unsent.popleft()
            close_all(descriptors)
        self._stop_writing()

    def receive(self) -> tuple[bytes, int | None] | None:
        """The next packet, empty where the other end has hung up, and a descriptor; None: not yet."""
        try:
            data, ancillary, _, _ = self._end.recvmsg(
                protocol.LONGEST_MESSAGE, _SPACE, socket.MSG_CMSG_CLOEXEC
            )
        except BlockingIOError:
            return None
        except OSError:
            return b"", None
        return data, int.from_bytes(ancillary[0][2], "little") if ancillary else None

    def end_sending(self) -> None:
        """What was not sent yet is forgotten; the other end hears of it."""
        self._stop_writing()
        for _, descriptors in self._unsent:
            close_all(descriptors)
        self._unsent.clear()
        try:
            self._end.shutdown(socket.SHUT_WR)
        except OSError:  # the agent has ended
            return

    def release(self) -> socket.socket:
        """The end, for another channel."""
        self._stop_writing()
        self._loop.remove_reader(self._end)
        return self._end

    def _stop_writing(self) -> None:
        if self._writing:
            self._loop.remove_writer(self._end)
            self._writing = False


def close_all(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
