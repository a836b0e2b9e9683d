"""Trees of processes: what a command has started is found by its mark, in whatever session it is, and ended.

The mark is a number as a limit that nothing uses and that can only be lowered; all that a command starts
inherits it. Later commands have lower numbers with large gaps, so that nobody can take one that is given out
later.
"""

from __future__ import annotations

import _signal
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ENDED_STATES, THREADS = (b"Z", b"X"), 17
"""And the place, after the state's, of the number of threads: others may go on when the first has ended."""
DYING_SECONDS = 1.0
"""How long processes that were killed are waited for."""


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # it has ended
        return b""


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:  # it has ended
        return found
    return found


def below(root: int) -> list[int]:
    """All processes that come from `root`, without it, and without those that have ended."""
    found, at = [root], 0
    while at < len(found):
        found += children(found[at])
        at += 1
    return list(filter(running, found[1:]))


def running(pid: int) -> bool:
    state = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(state) and (state[0] not in ENDED_STATES or int(state[THREADS]) > 1)


def mark_of(pid: int) -> int:
    for line in read(f"/proc/{pid}/limits").splitlines():
        if line.startswith(b"Max realtime timeout"):
            hard = line.split()[4]
            return int(hard) if hard.isdigit() else 0
    return 0  # it has ended


def started_by(mark: int, marks: Iterable[int]) -> list[int]:
    """All processes that a command has started, its shell among them.

    The mark of a child of ours, a shell or an orphan, tells whose it and all below it are. One that is no
    command's has been lowered: what has done that goes with the first command that is ended.

    Args:
        marks: Those of all commands.
    """
    others = set(marks) - {mark}
    tops = [pid for pid in children(os.getpid()) if mark_of(pid) not in others]
    return [*filter(running, tops), *(pid for top in tops for pid in below(top))]


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # it has ended, or is another user's now
            continue


def end_all(find: Callable[[], list[int]]) -> bool:
    """Ends all processes that are found: first nothing may go on and start more, then all is killed.

    Returns:
        Whether all of them have ended by now.
    """
    stopped: set[int] = set()
    while fresh := set(find()) - stopped:
        signal_all(fresh, _signal.SIGSTOP)
        stopped |= fresh
    signal_all(stopped, _signal.SIGKILL)
    until = time.monotonic() + DYING_SECONDS
    while any(map(running, stopped)):
        if time.monotonic() >= until:
            return False
        time.sleep(0.002)
    return True
