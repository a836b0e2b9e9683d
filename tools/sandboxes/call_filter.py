"""Which calls of the kernel commands in bubblewrap may not make: a program of seccomp.

Refused are namespaces (a new one would give back rights inside itself, such as file systems without a limit),
keyrings, which no namespace holds, and a few large interfaces that only privileged programs need.
"""

from __future__ import annotations

import errno
import platform
import struct

AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "x86_64": {"unshare": 272, "setns": 308, "clone": 56, "add_key": 248, "request_key": 249, "keyctl": 250}
    | {"bpf": 321, "userfaultfd": 323, "perf_event_open": 298},
    "aarch64": {"unshare": 97, "setns": 268, "clone": 220, "add_key": 217, "request_key": 218, "keyctl": 219}
    | {"bpf": 280, "userfaultfd": 282, "perf_event_open": 241},
}
CLONE3, IO_URING_SETUP = 435, 425  # on all machines
X32_BIT = 0x40000000
"""Marks the calls of x86_64's third interface."""
NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

LOAD_WORD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL_NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def why_no_filter() -> str | None:
    """Why there is no filter for this machine; None: there is one."""
    machine = platform.machine()
    return None if machine in CALLS else f"no filter of system calls for {machine}"


def call_filter(machine: str = platform.machine()) -> bytes:
    """The program, as the kernel takes it.

    Raises:
        KeyError: Nobody has written down the calls of this machine.
    """
    calls = dict(CALLS[machine])
    clone = calls.pop("clone")
    program = [
        (LOAD_WORD, 0, 0, ARCHITECTURE),
        (JUMP_EQUAL, 1, 0, AUDIT_ARCHITECTURE[machine]),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
        (LOAD_WORD, 0, 0, CALL_NUMBER),
        (JUMP_AT_LEAST, 0, 1, X32_BIT),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
        (JUMP_EQUAL, 0, 1, CLONE3),  # its flags are in memory, out of reach: callers fall back to clone
        (RETURN, 0, 0, REFUSE | errno.ENOSYS),
    ]
    for number in (*calls.values(), IO_URING_SETUP):
        program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    program += [
        (JUMP_EQUAL, 0, 3, clone),
        (LOAD_WORD, 0, 0, FIRST_ARGUMENT),
        (JUMP_ANY_BIT, 0, 1, NEW_NAMESPACES),
        (RETURN, 0, 0, REFUSE | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
