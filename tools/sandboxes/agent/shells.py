"""Starts the shell of a command, with what it is given and its mark."""

from __future__ import annotations

import os
import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ARGUMENT_LIMIT = 128 * 1024 - 1
"""Bytes of one argument of a program on Linux."""


def start_shell(mark: int, request: dict[str, Any], pipes: list[int], groups: list[int]) -> int:
    """Starts the shell of a command, which enters its control groups first; returns its pid.

    Raises:
        OSError, ValueError: There are as many processes as there may be, or the kernel does not take this.
    """
    places = range(3, 3 + len(groups))
    enter = "".join(f"echo 0 >&{place} 2>/dev/null; exec {place}>&-; " for place in places)
    command = os.fsencode(enter + request["command"])
    shell = (request["bash"] and bash_in(request["env"]["PATH"])) or "/bin/sh"
    name = os.fsencode(os.path.basename(shell))
    first = 3 - len(pipes)  # without a standard input, it has ours: nothing
    actions = [(os.POSIX_SPAWN_DUP2, pipe, place) for place, pipe in enumerate(pipes, first)]
    arguments = [name, b"-c", command]
    if len(command) > ARGUMENT_LIMIT:
        script, place = os.memfd_create("command"), 3 + len(groups)
        with open(script, "wb", closefd=False) as file:
            file.write(command)
        arguments = [name, b"/proc/self/fd/%d" % place]
        actions.append((os.POSIX_SPAWN_DUP2, script, place))
        pipes.append(script)  # closed with them
    actions += [(os.POSIX_SPAWN_DUP2, group, place) for group, place in zip(groups, places, strict=True)]
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))  # ours, since a child must never be without it
    return os.posix_spawn(shell, arguments, request["env"], file_actions=actions, setsid=True)


def bash_in(path: str) -> str | None:
    """Where bash is, by the folders of a PATH."""
    places = (f"{folder}/bash" for folder in path.split(":") if folder.startswith("/"))
    return next((place for place in places if os.access(place, os.X_OK)), None)


def complain(pipe: int, text: str) -> None:
    """Says something where a command would."""
    try:
        os.write(pipe, f"sh: {text}\n".encode(errors="replace"))
    except BrokenPipeError:  # nobody reads it
        return
