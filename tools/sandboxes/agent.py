"""Runs inside a sandbox: starts the commands of one task, and sees and ends what they leave behind.

Started as `python -I -S agent.py`, one process per task, with a socket to the host as standard input. Every
message is one packet: a head, and for some a text or descriptors. All orphans of the task become its
children, since it is the first process of its namespace or a subreaper. All that a command starts inherits a
number as a limit that nothing uses and that can only be lowered: so it is found in whatever session it is.
Later commands have lower numbers with large gaps, so that nobody can take one that is given out later.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import time
from collections.abc import Callable, Iterable
from typing import Any

HEAD = struct.Struct("=Bqq")
"""What the message is, which command it is about, a number."""
HELLO, READY, FAILED, ENDED = range(4)
"""To the host."""
SETUP, RUN, END, DROP = range(10, 14)
"""From the host: SETUP with [body, groups], RUN with [body, stdin, stdout, stderr], DROP with pipes."""
LONGEST_MESSAGE = 4096
MOST_DESCRIPTORS = 4
ARGUMENT_LIMIT = 128 * 1024 - 1
"""Bytes of one argument of a program on Linux."""
ENDED_STATES, THREADS = (b"Z", b"X"), 17
"""And the place, after the state's, of the number of threads: others may go on when the first has ended."""
FIRST_MARK, GAP_BYTES = 1 << 62, 4
FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
CAUGHT = signal.valid_signals() - FAULTS - {signal.SIGKILL, signal.SIGSTOP}
"""Commands may send them to us, whose user they are. Caught, not ignored: a new program has them as ever."""
HIGH = 32
"""Descriptors of control groups are at least this: none of those that a command is given."""
CANNOT_RUN = 126
"""Exit code of a command whose shell could not be started."""
CANNOT_ENTER = 2
"""Exit code of a command whose folder is not there, as of a `cd`."""
DYING_SECONDS = 1.0
"""How long processes that were killed are waited for."""
DROPPED_AT_ONCE = 1 << 20
SPARE_DESCRIPTORS = 64

KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/mtrr")
"""Root may change them without having any right, in whatever namespace."""
KEYS = ("/proc/keys", "/proc/key-users")

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_SECCOMP = 1, 4, 24, 22
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 36, 38, 2
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND = 1, 2, 4, 32, 4096
CLONE_NEWUSER = 0x10000000
CAPABILITY_VERSION_3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def prctl(option: int, value: Any, extra: Any = 0) -> None:
    longs = [v if isinstance(v, ctypes.c_void_p) else ctypes.c_ulong(v) for v in (value, extra, 0, 0)]
    checked(libc.prctl(option, *longs), f"prctl {option}")


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = (source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    checked(libc.mount(*arguments), f"mount {target}")


# Setting up: once, before the first command.


def set_up(settings: dict[str, Any]) -> None:
    """Gives the task its limits and its place, then lets go of every right; all commands inherit that."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    user = settings["user"]
    if space := settings["space"]:
        make_space(space, None if user["namespace"] else (user["uid"], user["gid"]))
    for name, value in settings["rlimits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if user:
        give_up_rights(**user)
        filter_calls(bytes.fromhex(settings["filter"]))
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of user has cleared it
    prctl(PR_SET_DUMPABLE, 0)  # commands run as the same user: none may look into this process


def make_space(space: dict[str, Any], owner: tuple[int, int] | None) -> None:
    """One file system of limited size in memory, seen in several places; the rest becomes read-only."""
    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, space["options"])
    for number, (target, mode) in enumerate(space["folders"]):
        folder = f"/tmp/{number}"
        os.mkdir(folder)
        os.chmod(folder, mode)
        if owner is not None:
            os.chown(folder, *owner)
        os.makedirs(target, exist_ok=True)
        mount(folder, target, "", MS_BIND)
    if bound := space["bound"]:
        os.makedirs(bound[1], exist_ok=True)
        mount(bound[0], bound[1], "", MS_BIND)
    for place in filter(os.path.exists, KERNEL_SETTINGS):
        mount(place, place, "", MS_BIND)
    for place in (*filter(os.path.exists, KEYS), *for_root_alone()):
        mount("/dev/null", place, "", MS_BIND)
    for place in filter(os.path.exists, ("/dev", "/", *KERNEL_SETTINGS)):
        mount("", place, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def for_root_alone() -> list[str]:
    """What /proc shows of the whole machine to no user but root."""
    files = [entry for entry in os.scandir("/proc") if entry.is_file(follow_symlinks=False)]
    return [entry.path for entry in files if not entry.stat().st_mode & stat.S_IROTH]


def give_up_rights(uid: int, gid: int, namespace: bool) -> None:
    """Becomes a user without any right.

    Args:
        namespace: Whether all this is in a user namespace, as its only user: a second one gives the number.
    """
    if namespace:
        maps = {"uid_map": f"{uid} {os.getuid()} 1", "setgroups": "deny", "gid_map": f"{gid} {os.getgid()} 1"}
        checked(libc.unshare(CLONE_NEWUSER), "a second user namespace")
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    else:
        os.setgroups([])
        capability = 0
        while libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) == 0:
            capability += 1  # up to the last that this kernel knows
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    checked(libc.capset(struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24)), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def filter_calls(program: bytes) -> None:
    code = ctypes.create_string_buffer(program, len(program))
    described = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    )
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_void_p(ctypes.addressof(described)))


# Trees of processes.


def read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:  # it has ended
        return b""


def children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it has ended
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, read(f"/proc/{pid}/task/{thread}/children").split())
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
        with contextlib.suppress(
            ProcessLookupError, PermissionError
        ):  # it has ended, or is another user's now
            os.kill(pid, number)


def end_all(find: Callable[[], list[int]]) -> None:
    """Ends all processes that are found: first nothing may go on and start more, then all is killed."""
    stopped: set[int] = set()
    while fresh := set(find()) - stopped:
        signal_all(fresh, signal.SIGSTOP)
        stopped |= fresh
    signal_all(stopped, signal.SIGKILL)
    until = time.monotonic() + DYING_SECONDS
    while any(map(running, stopped)) and time.monotonic() < until:
        time.sleep(0.002)


def start_shell(mark: int, request: dict[str, Any], pipes: list[int], groups: list[int]) -> int:
    """Starts the shell of a command, which enters its control groups first; returns its pid.

    Raises:
        OSError, ValueError: There are as many processes as there may be, or the kernel does not take this.
    """
    places = range(3, 3 + len(groups))
    enter = "".join(f"echo 0 >&{place} 2>/dev/null; exec {place}>&-; " for place in places)
    command = os.fsencode(enter + request["command"])
    actions = [(os.POSIX_SPAWN_DUP2, pipe, place) for place, pipe in enumerate(pipes)]
    arguments = [b"sh", b"-c", command]
    if len(command) > ARGUMENT_LIMIT:
        script, place = os.memfd_create("command"), 3 + len(groups)
        with open(script, "wb", closefd=False) as file:
            file.write(command)
        arguments = [b"sh", b"/proc/self/fd/%d" % place]
        actions.append((os.POSIX_SPAWN_DUP2, script, place))
        pipes.append(script)  # closed with them
    actions += [(os.POSIX_SPAWN_DUP2, group, place) for group, place in zip(groups, places)]  # noqa: B905
    resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))  # ours, since a child must never be without it
    return os.posix_spawn("/bin/sh", arguments, request["env"], file_actions=actions, setsid=True)


def complain(pipe: int, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # nobody reads it
        os.write(pipe, f"sh: {text}\n".encode(errors="replace"))


class Agent:
    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.commands: dict[int, int] = {}
        """By the pid of their shell."""
        self.marks: dict[int, int] = {}
        """Of all commands, by id."""
        hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        self.mark = FIRST_MARK if hard == resource.RLIM_INFINITY else min(FIRST_MARK, hard)
        self.groups: list[int] = []
        """What a process writes to that enters the control groups of commands: they are not ours."""
        self.poll = select.poll()
        self.poll.register(link, select.POLLIN)
        self.wake, other_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.poll.register(self.wake, select.POLLIN)
        signal.set_wakeup_fd(other_end, warn_on_full_buffer=False)
        for number in CAUGHT:
            signal.signal(number, lambda *_: None)
        self.nowhere = os.open("/dev/null", os.O_WRONLY)

    def send(self, what: int, id: int = 0, value: int = 0, text: str = "") -> None:
        self.link.send(
            HEAD.pack(what, id, value) + text.encode(errors="replace")[: LONGEST_MESSAGE - HEAD.size]
        )

    def serve(self) -> None:
        """Until the host hangs up."""
        self.send(HELLO)
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.link.fileno():
                    if not self.obey():
                        return
                elif descriptor == self.wake:
                    os.read(self.wake, 4096)
                    self.reap()
                else:
                    self.drop(descriptor)

    def obey(self) -> bool:
        space = socket.CMSG_SPACE(MOST_DESCRIPTORS * 4)
        data, ancillary, _, _ = self.link.recvmsg(LONGEST_MESSAGE, space, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return False
        descriptors: list[int] = []
        for _, _, packed in ancillary:
            descriptors += struct.unpack(f"{len(packed) // 4}i", packed)
        what, id, _ = HEAD.unpack_from(data)
        if what == SETUP:
            self.groups = [fcntl.fcntl(group, fcntl.F_DUPFD_CLOEXEC, HIGH) for group in descriptors[1:]]
            for group in descriptors[1:]:
                os.close(group)
            try:
                set_up(read_body(descriptors[0]))
            except (OSError, ValueError) as error:
                self.send(FAILED, text=str(error))
            else:
                self.send(READY)
        elif what == RUN:
            self.run(id, read_body(descriptors[0]), descriptors[1:])
        elif what == END:
            self.end(id)
        elif what == DROP:
            for descriptor in descriptors:
                if descriptor < resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_DESCRIPTORS:
                    self.poll.register(descriptor, select.POLLIN)
                else:  # who writes to it finds it broken: we need some for ourselves
                    os.close(descriptor)
        return True

    def run(self, id: int, request: dict[str, Any], pipes: list[int]) -> None:
        self.mark -= 1 + int.from_bytes(os.urandom(GAP_BYTES))
        self.marks[id] = self.mark
        try:
            os.chdir(request["cwd"])
        except (OSError, ValueError) as error:
            complain(pipes[2], f"cd: can't cd to {request['cwd']}: {getattr(error, 'strerror', error)}")
            self.send(ENDED, id, CANNOT_ENTER)
        else:
            try:
                self.commands[start_shell(self.mark, request, pipes, self.groups)] = id
            except (OSError, ValueError) as error:
                complain(pipes[2], str(getattr(error, "strerror", error)))
                self.send(ENDED, id, CANNOT_RUN)
            os.chdir("/")
        for pipe in pipes:
            os.close(pipe)

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (id := self.commands.pop(pid, None)) is not None:
                code = os.waitstatus_to_exitcode(status)
                self.send(ENDED, id, code if code >= 0 else 128 - code)

    def end(self, id: int) -> None:
        """Ends a command with all that it started; that is told when nothing of it is left."""
        if id in self.commands.values():
            end_all(lambda: started_by(self.marks[id], self.marks.values()))

    def drop(self, pipe: int) -> None:
        try:
            if os.splice(pipe, self.nowhere, DROPPED_AT_ONCE) > 0:
                return
        except OSError as error:
            if error.errno == errno.EAGAIN:
                return
        self.poll.unregister(pipe)
        os.close(pipe)


def read_body(descriptor: int) -> dict[str, Any]:
    with open(descriptor, "rb") as file:
        file.seek(0)
        body: dict[str, Any] = json.loads(file.read())
    return body


def main() -> None:
    link = socket.socket(fileno=os.dup(0))
    nothing = os.open("/dev/null", os.O_RDWR)
    for place in range(3):
        os.dup2(nothing, place)
    Agent(link).serve()
    if os.getpid() != 1:  # else the kernel does it
        end_all(lambda: below(os.getpid()))


if __name__ == "__main__":
    main()
