"""bash runs a command where there is one: it is what models write for."""

from __future__ import annotations

from shlex import quote

_FOR_BASH = "set -- sh; command -v bash >/dev/null && set -- bash; exec $1 -c {command} $1"


def for_bash(command: str) -> str:
    """Text for `sh` that has bash run a command, itself where there is no bash.

    Args:
        command: As long as an argument of a program may be (Linux: 128 KiB).
    """
    return _FOR_BASH.format(command=quote(command))
