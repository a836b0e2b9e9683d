"""Calls of the kernel that Python has no name for."""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_SECCOMP = 1, 4, 24, 22
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 36, 38, 2
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    """Raises OSError where a call has failed."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def prctl(option: int, value: Any, extra: Any = 0) -> None:
    """Raises OSError."""
    longs = [v if isinstance(v, ctypes.c_void_p) else ctypes.c_ulong(v) for v in (value, extra, 0, 0)]
    checked(libc.prctl(option, *longs), f"prctl {option}")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Raises OSError."""
    arguments = (source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    checked(libc.mount(*arguments), f"mount {target}")


def unshare(spaces: int, what: str) -> None:
    """Raises OSError."""
    checked(libc.unshare(spaces), what)


def drop_capabilities() -> None:
    """All that this process has. Raises OSError."""
    checked(libc.capset(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)), "capset")


def drop_capability_bounds() -> None:
    """No program that is started may have any."""
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1  # up to the last that this kernel knows


def filter_calls(program: bytes) -> None:
    """Has a program of seccomp decide on all calls from now on. Raises OSError."""
    code = ctypes.create_string_buffer(program, len(program))
    described = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    )
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(described)))
