"""What the host and an agent say to each other, one packet each.

A packet is a head, then a body: what `marshal` writes, since both ends are the same Python. A body that is
too long for a packet is in a file, the first of the descriptors that come along.
"""

from __future__ import annotations

import marshal
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAD = struct.Struct("=Bqq")
"""What the message is, which command it is about, a number."""
HELLO, READY, FAILED, ENDED, CLEAN = range(5)
"""To the host: HELLO from what forks agents; READY, or FAILED with why, and a descriptor of a process that
the host has not started itself; ENDED with an exit code; CLEAN last of all of a task,
where nothing of it runs any more: 1 for the command where another task may follow, 1 for the number where
nothing is left on this machine."""
SETUP, RUN, END, DROP, LEAVE = range(10, 15)
"""From the host: SETUP with body and groups, RUN with body, stdin if there is one, stdout and stderr, DROP
with pipes, LEAVE with body: the next that is asked for is of another task."""
LONGEST_MESSAGE = 16384
MOST_DESCRIPTORS = 4


def packet(what: int, id: int, body: dict[str, Any] | None = None) -> tuple[bytes, list[int]]:
    """A packet, and the descriptors that go before all others with it, for the caller to close."""
    head = HEAD.pack(what, id, 0)
    if body is None:
        return head, []
    content = marshal.dumps(body)
    if len(head) + len(content) <= LONGEST_MESSAGE:
        return head + content, []
    descriptor = os.memfd_create("body")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return head, [descriptor]


def body_of(data: bytes, descriptors: list[int]) -> dict[str, Any]:
    """The body of a packet; takes its file, if it has one, from the descriptors."""
    content = data[HEAD.size :]
    if not content:
        with open(descriptors.pop(0), "rb") as file:
            file.seek(0)
            content = file.read()
    body: dict[str, Any] = marshal.loads(content)
    return body
