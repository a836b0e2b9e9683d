"""An agent: starts the commands of a task, and sees and ends what they leave behind.

All orphans of the task become its children, since it is the first process of its namespace or a subreaper.
"""

from __future__ import annotations

import _signal
import _socket
import errno
import fcntl
import os
import resource
import select
import struct

from .leaving import take_away
from .place import set_up
from .protocol import (
    CLEAN,
    DROP,
    END,
    ENDED,
    FAILED,
    HEAD,
    LEAVE,
    LONGEST_MESSAGE,
    MOST_DESCRIPTORS,
    READY,
    RUN,
    SETUP,
    body_of,
)
from .shells import complain, start_shell
from .trees import below, end_all, started_by

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FIRST_MARK, LAST_MARK, GAP_BYTES = 1 << 62, 1 << 48, 4
FAULTS = {_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL}
CAUGHT = _signal.valid_signals() - FAULTS - {_signal.SIGKILL, _signal.SIGSTOP, _signal.SIGCONT}
"""Commands may send them to us, whose user they are. Caught, not ignored: a new program has them as ever."""
HIGH = 32
"""Descriptors of control groups are at least this: none of those that a command is given."""
CANNOT_RUN = 126
"""Exit code of a command whose shell could not be started."""
CANNOT_ENTER = 2
"""Exit code of a command whose folder is not there, as of a `cd`."""
DROPPED_AT_ONCE = 1 << 20
SPARE_DESCRIPTORS = 64


def catch_signals() -> None:
    """From now on they only wake whoever polls; a fork keeps that."""
    for number in CAUGHT:
        _signal.signal(number, lambda *_: None)


def waking_pipe() -> int:
    """A descriptor that can be read from after each signal."""
    wake, other_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    before = _signal.set_wakeup_fd(other_end, warn_on_full_buffer=False)
    if before >= 0:  # of the process that this one is a fork of
        os.close(before)
    return wake


def take(link: _socket.socket) -> tuple[bytes, list[int]]:
    """The next packet and its descriptors; nothing where the other end has hung up."""
    space = _socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
    data, ancillary, _, _ = link.recvmsg(LONGEST_MESSAGE, space, _socket.MSG_CMSG_CLOEXEC)
    descriptors: list[int] = []
    for _, _, packed in ancillary:
        descriptors += struct.unpack(f"{len(packed) // 4}i", packed)
    return data, descriptors


class Agent:
    """Of one task, then of the next; signals are caught by then.

    Args:
        link: To the host.
        forked: Whether the host has not started this process itself: it is given a hold on it.
    """

    def __init__(self, link: _socket.socket, forked: bool = False) -> None:
        self.link, self.forked = link, forked
        self.commands: dict[int, int] = {}
        """By the pid of their shell."""
        self.marks: dict[int, int] = {}
        """Of all commands, by id."""
        hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        self.mark = FIRST_MARK if hard == resource.RLIM_INFINITY else min(FIRST_MARK, hard)
        self.groups: list[int] = []
        """What a process writes to that enters the control groups of commands: they are not ours."""
        self.leaving: dict[str, Any] = {}
        """How `take_away` is to be called at the end of a task."""
        self.dropped: set[int] = set()
        """Pipes that nobody else reads any more."""
        self.poll = select.poll()
        self.poll.register(link, select.POLLIN)
        self.wake = waking_pipe()
        self.poll.register(self.wake, select.POLLIN)
        self.nowhere = -1

    def send(
        self, what: int, id: int = 0, value: int = 0, text: str = "", passed: Sequence[int] = ()
    ) -> None:
        packet = HEAD.pack(what, id, value) + text.encode(errors="replace")
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", each)) for each in passed]
        try:
            self.link.sendmsg([packet[:LONGEST_MESSAGE]], rights)
        except OSError:  # the host has ended: that shows at the next look
            return

    def serve(self) -> bool:
        """Until the host hangs up, then to the end of all that runs.

        Returns:
            Whether nothing is left.
        """
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.link.fileno():
                    if not self.obey():
                        return os.getpid() == 1 or self.end_task()  # of the first, the kernel ends them
                elif descriptor == self.wake:
                    os.read(self.wake, 4096)
                    self.reap()
                elif descriptor in self.dropped:
                    self.drop(descriptor)

    def end_task(self, left: dict[str, Any] | None = None) -> bool:
        """Ends all that runs, and knows nothing of it any more.

        Args:
            left: What `take_away` is given besides what came with the set-up; None: there is no next task.

        Returns:
            Whether nothing runs.
        """
        if self.reap() and (not end_all(lambda: below(os.getpid())) or self.reap()):
            return False
        for pipe in list(self.dropped):
            self.close_dropped(pipe)
        self.marks.clear()
        for_another = left is not None and self.mark > LAST_MARK
        emptied = left is not None and take_away(**self.leaving, **left)
        self.send(CLEAN, int(for_another), int(emptied))
        return True

    def obey(self) -> bool:
        """Does what the host asks; whether it may ask for more."""
        data, descriptors = take(self.link)
        if not data:
            return False
        what, id, _ = HEAD.unpack_from(data)
        if what == SETUP:
            settings = body_of(data, descriptors)
            self.groups = [fcntl.fcntl(group, fcntl.F_DUPFD_CLOEXEC, HIGH) for group in descriptors]
            for group in descriptors:
                os.close(group)
            self.leaving = settings["leave"]
            self.set_up(settings)
        elif what == RUN:
            self.run(id, body_of(data, descriptors), descriptors)
        elif what == LEAVE:
            return self.end_task(body_of(data, descriptors)) and self.mark > LAST_MARK
        elif what == END:
            self.end(id)
        elif what == DROP:
            for descriptor in descriptors:
                if descriptor < resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_DESCRIPTORS:
                    self.poll.register(descriptor, select.POLLIN)
                    self.dropped.add(descriptor)
                else:  # who writes to it finds it broken: we need some for ourselves
                    os.close(descriptor)
        return True

    def set_up(self, settings: dict[str, Any]) -> None:
        passed = [os.pidfd_open(os.getpid())] if self.forked else []
        try:
            set_up(settings)
        except (OSError, ValueError) as error:
            self.send(FAILED, text=str(error), passed=passed)
        else:
            self.send(READY, passed=passed)
        for pidfd in passed:
            os.close(pidfd)

    def run(self, id: int, request: dict[str, Any], pipes: list[int]) -> None:
        self.mark -= 1 + int.from_bytes(os.urandom(GAP_BYTES))
        self.marks[id] = self.mark
        errors = pipes[-1]
        try:
            os.chdir(request["cwd"])
        except (OSError, ValueError) as error:
            complain(errors, f"cd: can't cd to {request['cwd']}: {getattr(error, 'strerror', error)}")
            self.send(ENDED, id, CANNOT_ENTER)
        else:
            try:
                self.commands[start_shell(self.mark, request, pipes, self.groups)] = id
            except (OSError, ValueError) as error:
                complain(errors, str(getattr(error, "strerror", error)))
                self.send(ENDED, id, CANNOT_RUN)
            os.chdir("/")
        for pipe in pipes:
            os.close(pipe)

    def reap(self) -> bool:
        """Tells the host of commands that have ended; returns whether anything still runs."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if (id := self.commands.pop(pid, None)) is not None:
                code = os.waitstatus_to_exitcode(status)
                self.send(ENDED, id, code if code >= 0 else 128 - code)

    def end(self, id: int) -> None:
        """Ends a command with all that it started; that is told when nothing of it is left."""
        if id in self.commands.values():
            end_all(lambda: started_by(self.marks[id], self.marks.values()))

    def drop(self, pipe: int) -> None:
        if self.nowhere < 0:
            self.nowhere = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
        try:
            if os.splice(pipe, self.nowhere, DROPPED_AT_ONCE) > 0:
                return
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return
        self.close_dropped(pipe)

    def close_dropped(self, pipe: int) -> None:
        self.dropped.remove(pipe)
        self.poll.unregister(pipe)
        os.close(pipe)


def quiet_link() -> _socket.socket:
    """The socket that is this process's standard input; its three standard streams lead nowhere then."""
    link = _socket.socket(fileno=os.dup(0))
    for place, mode in enumerate([os.O_RDONLY, os.O_WRONLY, os.O_WRONLY]):
        nothing = os.open("/dev/null", mode)
        os.dup2(nothing, place)
        os.close(nothing)
    return link


def main() -> None:
    """The agent of the one task of this process."""
    link = quiet_link()
    catch_signals()
    Agent(link).serve()
