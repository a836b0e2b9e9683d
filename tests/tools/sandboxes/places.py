"""How a test gets a sandbox of any kind, breaks what it depends on, and sees what is left of it."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import psutil

from tests.tools.sandboxes.engines import IMAGE, Podman, Sshd, wait_until
from tests.tools.sandboxes.leftovers import mounts, nothing_left
from tools.sandboxes.base import CommandResult, Sandbox, SandboxConfig
from tools.sandboxes.kinds import make

LATE = 2.0
"""Seconds past its deadline within which every command is back."""
DEADLINE = 120.0
"""Seconds for commands that end by themselves."""
_WARM: set[str] = set()


class Place:
    """One kind of sandbox, on this machine."""

    kind: str
    has_python: ClassVar[bool] = True

    def config(self, **settings: Any) -> SandboxConfig:
        return SandboxConfig(self.kind, **settings)

    def make(self, **settings: Any) -> Sandbox:
        return make(self.config(**settings))

    def check(self, test: Callable[[Sandbox], Awaitable[object]], **settings: Any) -> None:
        """Runs a test in a sandbox, which must leave nothing behind."""

        async def main() -> None:
            made = self.make(**settings)
            try:
                await made.start()
                await test(made)
            finally:
                await made.stop()

        self.warm_up()
        with nothing_left():
            asyncio.run(main())
            self.see_nothing_left()

    def warm_up(self) -> None:
        """Lets this process make what it makes once for all sandboxes of the kind."""

        async def once() -> None:
            made = self.make()
            await made.start()
            await made.stop()

        if self.kind not in _WARM:
            asyncio.run(once())
            _WARM.add(self.kind)

    def break_off(self, sandbox: Sandbox) -> None:
        """Takes away what the sandbox depends on."""
        raise NotImplementedError

    def mend(self) -> None:
        """Makes other sandboxes possible again."""

    def see_nothing_left(self) -> None:
        """Fails where something is left that is not on this side."""


def agents(kind: str) -> list[int]:
    """The pids of all agents that come from this process, the oldest first."""
    below = psutil.Process().children(recursive=True)
    lines = {process.pid: " ".join(process.cmdline()) for process in below}
    if kind == "local":  # forks of one process, which is not one itself
        nursery = {pid for pid, line in lines.items() if "from agent.nursery" in line}
        return [p.pid for p in below if p.pid in nursery and p.ppid() in nursery]
    return [pid for pid, line in lines.items() if "from agent.serving" in line]


@dataclass
class LocalPlace(Place):
    """local and bubblewrap: their agents come from us."""

    kind: str

    def break_off(self, sandbox: Sandbox) -> None:
        for pid in agents(self.kind):
            os.kill(pid, signal.SIGKILL)


@dataclass
class DockerPlace(Place):
    engine: Podman
    kind: str = "docker"
    has_python: ClassVar[bool] = False

    def config(self, **settings: Any) -> SandboxConfig:
        return super().config(**{"image": IMAGE, **settings})

    def break_off(self, sandbox: Sandbox) -> None:
        for name in self.engine.containers():
            self.engine.podman("kill", name)

    def see_nothing_left(self) -> None:
        assert self.engine.containers() == []
        merged = [line for line in mounts() if f"{self.engine.folder}/" in line and "/merged " in line]
        assert len(merged) == 1  # the engine's own container


@dataclass
class SshPlace(Place):
    server: Sshd
    kind: str = "ssh"

    def config(self, **settings: Any) -> SandboxConfig:
        return super().config(**{"options": self.server.options, **settings})

    def break_off(self, sandbox: Sandbox) -> None:
        for connection in self.server.connections():
            connection.kill()

    def see_nothing_left(self) -> None:
        wait_until(lambda: not os.listdir(self.server.far), "the far side keeps a task's folder", 10)
        wait_until(lambda: not self.server.connections(), "a connection is left", 10)


def is_running(command: str) -> bool:
    """Whether it runs now, if only as an argument of another program."""
    return any(" ".join(p.info["cmdline"] or []).endswith(command) for p in psutil.process_iter(["cmdline"]))


async def timed(made: Sandbox, command: str, seconds: float = DEADLINE, **more: Any) -> CommandResult:
    """Runs a command, which must be back in time; the sandbox must be well afterwards."""
    began = time.monotonic()
    result = await made.run(command, seconds, **more)
    assert time.monotonic() - began < seconds + LATE
    assert (await made.run("echo hi", DEADLINE)).stdout.text == "hi\n"
    return result
