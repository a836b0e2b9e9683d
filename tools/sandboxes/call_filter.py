"""Which calls of the kernel commands in bubblewrap may not make: a program of seccomp.

Refused are namespaces (a new one would give back rights inside itself, such as file systems without a limit),
keyrings, which no namespace holds, a few large interfaces that only privileged programs need, limits for the
agent, and modes with a setuid or setgid bit: a folder of the host would keep such a program.
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
MODES = {
    "x86_64": {"creat": (85, 1), "chmod": (90, 1), "fchmod": (91, 1), "fchmodat": (268, 2)}
    | {"mknod": (133, 1), "mknodat": (259, 2)},
    "aarch64": {"fchmod": (52, 1), "fchmodat": (53, 2), "mknodat": (33, 2)},
}
"""Calls that give a mode, and which argument that is."""
OPENING = {"x86_64": {"open": (2, 1), "openat": (257, 2)}, "aarch64": {"openat": (56, 2)}}
"""Calls that give one after their flags, if a file is made, and which argument the flags are."""
PRLIMIT = {"x86_64": 302, "aarch64": 261}
CLONE3, IO_URING_SETUP, OPENAT2, FCHMODAT2 = 435, 425, 437, 452  # on all machines
SET_ID_BITS = 0o6000
MAKING_A_FILE = 0o20000100
"""O_CREAT and O_TMPFILE."""
AGENT = 1
"""Its pid: it is the first in its namespace."""
X32_BIT = 0x40000000
"""Marks the calls of x86_64's third interface."""
NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

LOAD_WORD, JUMP_EQUAL, JUMP_AT_LEAST, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
CALL_NUMBER, ARCHITECTURE, ARGUMENTS, ARGUMENT_BYTES = 0, 4, 16, 8
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def why_no_filter() -> str | None:
    """Why there is no filter for this machine; None: there is one."""
    machine = platform.machine()
    return None if machine in CALLS else f"no filter of system calls for {machine}"


def _refused(number: int, *conditions: tuple[int, int, int]) -> list[tuple[int, int, int, int]]:
    """Refuses a call for which all conditions hold.

    Args:
        conditions: The argument that is looked at, the kind of the jump, and what it compares with.
    """
    body = [(RETURN, 0, 0, REFUSE | errno.EPERM)]
    for argument, jump, value in reversed(conditions):
        look = (LOAD_WORD, 0, 0, ARGUMENTS + ARGUMENT_BYTES * argument)
        body = [look, (jump, 0, len(body), value), *body]
    return [(JUMP_EQUAL, 0, len(body) + 1, number), *body, (RETURN, 0, 0, ALLOW)]


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
    ]
    for number in (CLONE3, OPENAT2):  # what they ask is out of reach in memory: callers fall back
        program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | errno.ENOSYS)]
    for number in (*calls.values(), IO_URING_SETUP):
        program += [(JUMP_EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE | errno.EPERM)]
    program += _refused(clone, (0, JUMP_ANY_BIT, NEW_NAMESPACES))
    program += _refused(PRLIMIT[machine], (0, JUMP_EQUAL, AGENT))
    for number, mode in (*MODES[machine].values(), (FCHMODAT2, 2)):
        program += _refused(number, (mode, JUMP_ANY_BIT, SET_ID_BITS))
    for number, flags in OPENING[machine].values():
        makes = (flags, JUMP_ANY_BIT, MAKING_A_FILE)
        program += _refused(number, makes, (flags + 1, JUMP_ANY_BIT, SET_ID_BITS))
    program.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
