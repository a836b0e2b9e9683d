"""Sandboxes on another computer, over ssh. They do not isolate: commands are the account's own there.

One connection per task. A guard at its far end makes the task's folder and waits for the connection to end,
however that comes; then it ends the task's processes and removes the folder, even if this process was killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import ClassVar
from weakref import WeakKeyDictionary

from tools.sandboxes.base import SandboxConfig, SandboxError
from tools.sandboxes.host_folders import new_folder, remove_folder
from tools.sandboxes.shell import ShellSandbox
from tools.sandboxes.transport import ProcessTransport
from tools.sandboxes.trees import kill_script, mark_script
from tools.sandboxes.wrapper import COMMAND_VARIABLE, WRAPPER_VARIABLE, reader

HINT = (
    "does `ssh -o BatchMode=yes HOST true` work? set the options host, user, port, identity_file, known_hosts"
)
CONNECT_SECONDS = 30
AT_ONCE = 5
"""Connections that are being made at the same time; sshd turns away more than ten."""
STOP_SECONDS = 15.0

_GUARD = """\
trap '' HUP INT TERM PIPE
umask 077
d=$(mktemp -d "${{TMPDIR:-/tmp}}/rl-cli-task-XXXXXXXX") || exit
mkdir "$d/work" "$d/private" "$d/home" "$d/tmp" || exit
echo "$$ $d"
cat >/dev/null
mv "$d" "$d.over"
( {kill} )
case $d in /*/rl-cli-task-*) chmod -R u+rwx "$d" "$d.over" 2>/dev/null; rm -rf -- "$d" "$d.over";; esac
"""
# What comes when the task is over does nothing; what came before has a mark, and may have made $d once more.
# A folder that is missing while the guard is there was removed by a command.
_SHELL = """\
{mark}[ -d {folder} ] || {{ kill -0 {guard} 2>/dev/null && [ ! -d {folder}.over ]; }} || exit 1; {script}"""

_connecting: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


class Ssh(ShellSandbox):
    """One folder and one connection per task. `~/.ssh/config` counts as usual."""

    kind = "ssh"
    isolates = False
    _options: ClassVar[tuple[str, ...]] = ("host", "user", "port", "identity_file", "known_hosts")
    _parallel: ClassVar[int] = 7
    """sshd allows ten sessions per connection: these, the guard, and one to end what is overdue."""
    _ends_alone: ClassVar[bool] = True

    @staticmethod
    def why_not() -> str | None:
        """Why no connection could be made from here; makes none."""
        return None if shutil.which("ssh") else "there is no ssh: install OpenSSH's client"

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        wanted = asdict(config.resources).items()
        self.unbounded = tuple(name for name, value in wanted if value is not None)
        self._host = ""
        self._always: list[str] = []
        self._making: asyncio.Task[Path] | None = None
        self._folder: Path | None = None
        self._far_folder = ""
        self._guard_pid = 0
        """On the far side."""
        self._guard: asyncio.subprocess.Process | None = None
        self._guard_words: asyncio.Task[str] | None = None

    async def _make(self) -> None:
        options = self.config.options
        if not options.get("host"):
            raise SandboxError("ssh: no host is named", "set the option host")
        if self.config.workdir:
            raise SandboxError(
                "ssh: cannot share a folder of this computer", "leave workdir out and upload it"
            )
        self._host = options["host"]
        await self._connect(self._arguments())

    async def _connect(self, arguments: list[str], settings: str | None = None) -> None:
        """Makes the connection and the task's folder.

        Args:
            arguments: Of ssh, for all of its calls.
            settings: Text of a file for ssh to use instead of the account's own.
        """
        self._making = asyncio.create_task(asyncio.to_thread(new_folder))
        self._folder = await asyncio.shield(self._making)
        if settings is not None:
            (self._folder / "settings").write_text(settings)
            arguments = [*arguments, "-F", "settings"]
        self._always = arguments
        turns = _connecting.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))
        async with turns:
            folder = self._far_folder = await self._start_guard()
        self.workdir, self.private = f"{folder}/work", f"{folder}/private"
        self._environment |= {"HOME": f"{folder}/home", "TMPDIR": f"{folder}/tmp"}

    async def _start_guard(self) -> str:
        """Returns the task's folder on the far side."""
        guard = _GUARD.format(kill=kill_script(COMMAND_VARIABLE, self._id, WRAPPER_VARIABLE)).encode()
        own = ["-M", "-o", f"ConnectTimeout={CONNECT_SECONDS}", "-o", "ControlPersist=no"]
        own += ["-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"]
        self._guard = await asyncio.create_subprocess_exec(
            *self._command(own, reader(guard, "guard")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            cwd=self._folder,
        )
        assert self._guard.stdin
        assert self._guard.stdout
        assert self._guard.stderr
        self._guard_words = asyncio.create_task(_last_line(self._guard.stderr))
        self._guard.stdin.write(guard)
        try:
            async with asyncio.timeout(CONNECT_SECONDS + 5):
                line = await self._guard.stdout.readline()
        except TimeoutError:
            raise SandboxError(f"{self.kind}: {self._host} does not answer", HINT) from None
        pid, _, folder = line.decode(errors="replace").rstrip("\n").partition(" ")
        if not pid.isdecimal() or not folder.startswith("/"):
            reason = await self._guard_words
            raise SandboxError(f"{self.kind}: no connection to {self._host}: {reason}", HINT)
        self._guard_pid = int(pid)
        return folder

    async def _remove(self) -> None:
        guard, self._guard = self._guard, None
        try:
            if guard:
                assert guard.stdin
                guard.stdin.close()
                try:
                    async with asyncio.timeout(STOP_SECONDS):
                        await guard.wait()
                except TimeoutError:
                    guard.kill()
                    await guard.wait()
        finally:
            if self._guard_words:
                self._guard_words.cancel()
            if self._making:
                await asyncio.to_thread(remove_folder, await self._making)

    async def _open(self, script: str) -> ProcessTransport:
        if not self._guard or self._guard.returncode is not None:
            raise SandboxError(await self._reason())
        # Past the connection that is there, no other is made.
        mark = mark_script(self._id, whole_task=True)
        shell = _SHELL.format(mark=mark, folder=quote(self._far_folder), guard=self._guard_pid, script=script)
        argv = self._command(["-o", "ControlMaster=no", "-o", "ProxyCommand=false"], shell)
        return await ProcessTransport.start(argv, cwd=self._folder)

    async def _unreachable(self) -> str | None:
        reason = await super()._unreachable()
        return None if reason is None else await self._reason()

    async def _reason(self) -> str:
        words = ""
        if self._guard_words:
            with contextlib.suppress(TimeoutError, asyncio.CancelledError):
                words = await asyncio.wait_for(asyncio.shield(self._guard_words), 0.5)
        return f"the connection to {self._host} has ended{': ' if words else ''}{words}"

    def _arguments(self) -> list[str]:
        """What the options ask for."""
        options, arguments = self.config.options, []
        if user := options.get("user"):
            arguments += ["-l", user]
        if port := options.get("port"):
            arguments += ["-p", port]
        if identity := options.get("identity_file"):
            arguments += ["-i", str(Path(identity).expanduser().absolute()), "-o", "IdentitiesOnly=yes"]
        if known := options.get("known_hosts"):
            arguments += ["-o", f"UserKnownHostsFile={_in_quotes(Path(known).expanduser().absolute())}"]
        return arguments

    def _command(self, more: list[str], script: str) -> list[str]:
        common = ["-T", "-a", "-x", "-S", "c", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]
        common += ["-o", "ClearAllForwardings=yes", "-o", "PermitLocalCommand=no", "-o", "EscapeChar=none"]
        return ["ssh", *self._always, *common, *more, "--", self._host, f"exec /bin/sh -c {quote(script)}"]


def _in_quotes(path: Path) -> str:
    """As a value of a file of settings, where a space ends a path and `%` begins a name."""
    return '"' + str(path).replace("%", "%%").replace('"', '\\"') + '"'


async def _last_line(stream: asyncio.StreamReader) -> str:
    """Reads to the end, and returns the last line that says something."""
    last = ""
    async for line in stream:
        last = line.decode(errors="replace").strip() or last
    return last
