"""What local and bubblewrap have in common: commands are run by an agent, limits come from the kernel."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Any

from tools.sandboxes.agent_link import AgentLink, Launch
from tools.sandboxes.background import BackgroundProcesses
from tools.sandboxes.base import (
    BASE_ENVIRONMENT,
    MIB,
    SandboxConfig,
    SandboxError,
    SandboxGone,
    check_command,
)
from tools.sandboxes.files import Files
from tools.sandboxes.idle_agent import IdleAgent
from tools.sandboxes.limits import ControlGroup
from tools.sandboxes.pipes import PipeReader, write_all
from tools.sandboxes.streaming import Sink
from tools.sandboxes.turns import turns

ENDING_SECONDS = 1.5
"""How long the end of all that a command started may take; an agent that needs longer is gone."""

LEAST_REALTIME = 1 << 50
"""Commands of a program that runs in a sandbox itself are told apart by what its own limit leaves them."""


class AgentSandbox(Files, BackgroundProcesses):
    """A sandbox on this machine.

    Attributes:
        unbounded: Which fields of the wanted resources are not bounded on this machine, once it has started.
            Memory then still has a limit for each process.
    """

    _own_bounds: frozenset[str] = frozenset()
    """Fields of the resources that this kind bounds without a control group."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.unbounded: tuple[str, ...] = ()
        self._link: AgentLink | None = None
        self._group = ControlGroup(config.resources)
        self._stopping: asyncio.Task[None] | None = None
        self._making: asyncio.Future[None] | None = None
        self._env: dict[str, str] = {}

    def _make(self) -> None:
        """Makes what the agent needs on the host. Blocks. Raises SandboxError."""

    @abstractmethod
    def _launch(self) -> Launch:
        """How the agent is started."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """What the agent is to set up, as `agent.set_up` takes it."""

    @abstractmethod
    def _environment(self) -> dict[str, str]:
        """The environment, without what the configuration adds."""

    @abstractmethod
    def _clean_up(self) -> None:
        """Removes what is left on the host when the agent has ended. Blocks."""

    def _waiting_agent(self) -> IdleAgent | None:
        """One that a task before has left, with all that `_make` makes."""
        return None

    async def _leave_place(self) -> bool:
        """Leaves the agent, with all that `_make` has made, to the next task; whether it could be done."""
        return False

    async def start(self) -> None:
        if self.config.image:
            raise SandboxError(f"{self.kind} takes no image", "leave it out, or choose another kind: docker")
        if self.config.options:
            raise SandboxError(f"{self.kind} has no option {min(self.config.options)}")
        if self.config.workdir is not None and not self.config.workdir.is_dir():
            raise SandboxError(f"{self.kind} has no folder {self.config.workdir} to work in")
        self._link = AgentLink(self.kind)
        try:
            if (agent := self._waiting_agent()) is not None:
                self._link.resume(agent)
            else:
                async with turns().starts_and_stops:
                    await self._make_on_host()
                    await self._link.start(self._launch(), self._settings(), self._group.doors())
            wanted = (name for name, value in vars(self.config.resources).items() if value is not None)
            self.unbounded = tuple(
                name for name in wanted if name not in self._group.bounds | self._own_bounds
            )
        except BaseException:
            await self.stop()
            raise
        self._env = {**BASE_ENVIRONMENT, **self._environment(), **self.config.env}

    async def _make_on_host(self) -> None:
        """stop() waits for it, also where its caller was cancelled."""

        def make() -> None:
            self._group.make()
            self._make()

        self._making = asyncio.get_running_loop().run_in_executor(None, make)
        await asyncio.shield(self._making)

    def _rlimits(self) -> dict[str, int]:
        limits = {"RLIMIT_CORE": 0}
        if self.config.resources.memory_mib is not None:
            limits["RLIMIT_DATA"] = self.config.resources.memory_mib * MIB
        return limits

    async def stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop())
        await asyncio.shield(self._stopping)

    async def _stop(self) -> None:
        if self._making is not None:
            await asyncio.wait({self._making})
        async with turns().starts_and_stops:
            if await self._leave_place():
                return
            if self._link is not None:
                await self._link.close()
            await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        self._group.remove()
        self._clean_up()

    async def alive(self) -> bool:
        return bool(self._env) and self._link is not None and self._link.gone is None

    async def _execute(
        self,
        command: str,
        seconds: float,
        *,
        cwd: str | None,
        env: Mapping[str, str],
        stdin: AsyncIterator[bytes] | bytes | None,
        sinks: tuple[Sink, Sink],
        bash: bool = False,
    ) -> int | None:
        check_command(command, cwd, env)
        link = self._link
        if link is not None and link.gone is not None:
            raise SandboxGone(link.gone)
        if link is None or not self._env:
            raise SandboxGone(f"the {self.kind} sandbox has not been started")
        request = {
            "command": command,
            "bash": bash,
            "cwd": os.path.join(self.workdir, cwd or ""),
            "env": {**self._env, **env},
        }
        await turns().to_launch()
        failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail(error: Exception) -> None:
            if not failed.done():
                failed.set_exception(error)

        readers = [PipeReader(sink, fail) for sink in sinks]
        feeding: asyncio.Task[None] | None = None
        theirs: list[int] = []
        if stdin is not None:
            their_stdin, ours = os.pipe()
            theirs.append(their_stdin)
            feeding = asyncio.create_task(write_all(ours, stdin))
            feeding.add_done_callback(lambda task: _tell(task, fail))
        id, exit_code = link.run(request, [*theirs, *(reader.other_end for reader in readers)])
        try:
            waiting: set[asyncio.Future[Any]] = {exit_code, failed}
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if exit_code.done():
                return exit_code.result()
            link.end(id)
            await asyncio.wait({exit_code}, timeout=ENDING_SECONDS)
            if not exit_code.done():
                link.give_up(f"the {self.kind} sandbox did not end a command at its deadline")
            exit_code.result()
            return None
        finally:
            if not exit_code.done():  # nobody waits any longer
                link.end(id)
                link.forget(id)
            if feeding is not None:
                feeding.cancel()
            for reader in readers:
                if (pipe := reader.finish()) is not None:
                    link.drop(pipe)
            if failed.done():
                failed.result()


def _tell(task: asyncio.Task[None], fail: Callable[[Exception], None]) -> None:
    with suppress(asyncio.CancelledError):
        error = task.exception()
        if isinstance(error, Exception):
            fail(error)


def why_no_agent() -> str | None:
    """Why this machine cannot run an agent; None: it can."""
    if sys.platform != "linux":
        return "needs Linux"
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return "needs a /proc that lists the children of processes (CONFIG_PROC_CHILDREN)"
    hard = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
    if hard != resource.RLIM_INFINITY and hard < LEAST_REALTIME:
        return "needs the limit of realtime to be open (ulimit -R unlimited): commands are told apart by it"
    return None
