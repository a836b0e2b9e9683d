"""What a sandbox is: a place where the commands of one task run, and its files.

Every kind keeps the same promises. A command has no terminal, and its standard input is closed or what it is
given. It is over when its shell has ended: what it left running in the background lives on until the sandbox
is stopped, its later output is dropped. At its deadline everything that it started is ended, and what it has
said by then is returned. Text is never decoded in pieces, bytes that are no UTF-8 become U+FFFD.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

MIB = 1024 * 1024
OUTPUT_LIMIT = 100_000
"""Bytes of each stream of a command that are kept: half from its beginning, half from its end."""
DOWNLOAD_LIMIT = 1024 * MIB
"""Bytes that a download takes unless it is told: the disk of a task."""


@dataclass(frozen=True)
class Resources:
    """What a task may use; None: as much as there is. A kind that cannot bound one of them says so."""

    cpus: float | None = None
    memory_mib: int | None = 2048
    disk_mib: int | None = 1024
    processes: int | None = 512


@dataclass(frozen=True)
class SandboxConfig:
    """How a task's sandbox is made.

    Attributes:
        kind: One of `tools.sandboxes.kinds.KINDS`.
        image: What docker, apptainer, modal and daytona start from.
        network: Whether commands may use the network.
        workdir: A folder of the host that commands may change; None: the sandbox's own, empty at first.
        env: Variables that commands see, on top of a small harmless environment, not the host's.
        options: What only one kind knows, such as `host` of ssh.
    """

    kind: str
    image: str | None = None
    network: bool = False
    workdir: Path | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """One stream of a command."""

    data: bytes
    """What was kept of it: the whole, or its beginning and its end with a mark between them."""
    size: int
    """Bytes that were written in all."""
    truncated: bool = False

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class CommandResult:
    """How a command went."""

    exit_code: int | None
    """None: it did not end by itself within its deadline. 128 + n where signal n ended it."""
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool = False


class SandboxError(Exception):
    """The sandbox failed, not the command: it could not start, or is gone.

    Args:
        message: One line: what failed, in which kind of sandbox.
        hint: What to do about it.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


class SandboxGone(SandboxError):
    """It was there and is not any more. Every later call fails with the same message, at once."""


class FileProblem(Exception):
    """A file of a sandbox cannot be read or written, as a command there would say it.

    Args:
        kind: "missing", "is_folder", "denied", "too_large", "exists", "no_space" or "failed".
        message: One line that names the path.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind, self.message = kind, message


@dataclass(frozen=True)
class ProcessStatus:
    """A process in the background."""

    id: str
    command: str
    running: bool
    exit_code: int | None
    """None: it is running; or, where it is not, a command has damaged what the sandbox had noted of it."""
    seconds: float
    size: int
    """Bytes of output so far, stdout and stderr together."""


class Sandbox(ABC):
    """A task's own place. Used by one event loop; calls may be made at the same time."""

    kind: ClassVar[str]
    isolates: ClassVar[bool]
    """Whether commands are kept from the host's files, processes and network."""
    workdir: str
    """Where commands begin, as they see it. Relative paths of files are meant from here."""
    private: str
    """A folder of the task's own, as commands see it, for what we keep inside; gone once it is stopped."""

    @abstractmethod
    async def start(self) -> None:
        """Makes it; must be called once, first.

        Raises:
            SandboxError: It cannot be made: the reason, and what to do.
        """

    @abstractmethod
    async def stop(self) -> None:
        """Ends everything in it and removes it. May be called at any time, and more than once."""

    @abstractmethod
    async def alive(self) -> bool:
        """Whether a command could be run now; never takes longer than a few seconds."""

    @abstractmethod
    async def run(
        self,
        command: str,
        seconds: float,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT,
        bash: bool = False,
    ) -> CommandResult:
        """Runs a command.

        Args:
            command: Text for `sh -c`; any length.
            seconds: Its deadline.
            cwd: Where it begins; relative to the working folder.
            env: Variables on top of the sandbox's.
            stdin: None: it reads an end of file at once.
            output_limit: Bytes of each stream that are kept.
            bash: Whether bash runs it where the sandbox has it, of the length of an argument; else `sh`.

        Raises:
            ValueError: No command can be or have this; see `check_command`.
            SandboxGone: The sandbox broke before the command was over.
        """

    @abstractmethod
    async def read_bytes(self, path: str, limit: int | None = None) -> bytes:
        """A file's content, or its first `limit` bytes.

        Raises:
            FileProblem: It cannot be read.
            SandboxGone
        """

    @abstractmethod
    async def write_bytes(self, path: str, data: bytes, mode: int | None = None) -> None:
        """Writes a file whole, or leaves what was there; makes the folders on the way.

        Raises:
            FileProblem: It cannot be written.
            SandboxGone
        """

    @abstractmethod
    async def upload(self, source: Path, target: str) -> None:
        """Copies a file or folder of the host, with its modes; checked by SHA-256.

        Raises:
            FileProblem, SandboxGone, OSError: of the host's side.
        """

    @abstractmethod
    async def download(self, source: str, target: Path, limit: int = DOWNLOAD_LIMIT) -> None:
        """Copies a file or folder to the host, with its modes; checked by SHA-256.

        Of a folder come files, folders, and links that lead to somewhere in it, as links; nothing else. More
        than a hundred folders in each other are an error. `target` is there as a whole or not at all.

        Args:
            target: A new place, or an empty folder; a file may replace a file, or go into a folder.
            limit: Bytes that are taken, holes of files included, each entry of a folder as 4 KiB more; 1 GiB
                unless it is given.

        Raises:
            FileProblem: It cannot be read, is neither a file nor a folder, or has more ("too_large").
            SandboxGone
            OSError: Of the host's side, as where `target` is a folder with something in it.
        """

    @abstractmethod
    async def start_process(
        self, command: str, *, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        """Starts a command in the background, and returns an id for it. It has no input.

        Raises:
            ValueError, SandboxGone: As `run`.
        """

    @abstractmethod
    async def processes(self) -> list[ProcessStatus]:
        """Those that `start_process` started, in order."""

    @abstractmethod
    async def read_process(self, id: str, offset: int = 0, limit: int = OUTPUT_LIMIT) -> bytes:
        """A part of a background process's output.

        Raises:
            KeyError: There is no such process.
        """

    @abstractmethod
    async def kill_process(self, id: str) -> None:
        """Ends a background process and what it started.

        Raises:
            KeyError: There is no such process.
        """


def check_command(command: str, cwd: str | None, env: Mapping[str, str]) -> None:
    """Raises ValueError where a command has what no program can be given, and says where."""
    for name in env:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise ValueError(f"{name!r} is no name of a variable")
    values = {f"the variable {name}": value for name, value in env.items()}
    for what, text in {"the command": command, "the working folder": cwd or "", **values}.items():
        if "\0" in text:
            raise ValueError(f"{what} has a NUL character in it")
        try:
            text.encode(errors="surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(f"{what} has half a character in it: {text[error.start]!r}") from None


BASE_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
}
"""What commands see in every kind: nobody is there to page, edit or type."""
