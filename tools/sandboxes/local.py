"""Commands run on this machine as this user, in a folder of the task's own. That does not isolate them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
from pathlib import Path
from typing import Any

from tools.sandboxes.agent_link import Launch
from tools.sandboxes.agent_sandbox import AgentSandbox, why_no_agent
from tools.sandboxes.agent_start import fork
from tools.sandboxes.base import SandboxConfig, SandboxError
from tools.sandboxes.idle_agent import IdleAgent
from tools.sandboxes.task_folders import TaskFolder, take_folder
from tools.sandboxes.task_places import TaskPlace, keep_place, take_place

MARK = "RL_CLI_SANDBOX"
"""A variable that all processes of a sandbox carry, each sandbox with a value of its own."""
SWEEP_SECONDS = 2.0


class Local(AgentSandbox):
    """Does not isolate: commands can read and change all that this user can, and use the network."""

    kind = "local"
    isolates = False

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._folder: TaskFolder | None = None
        self._mark = secrets.token_hex(8)

    @classmethod
    def why_not(cls) -> str | None:
        """Why it cannot be used on this machine; None: it can."""
        return why_no_agent()

    def _make(self) -> None:
        try:
            self._move_in(take_folder())
        except OSError as error:
            raise SandboxError(f"local has no folder for the task: {error}") from None

    def _waiting_agent(self) -> IdleAgent | None:
        place = take_place(self.config.resources)
        if place is None:
            return None
        self._group = place.group
        self._move_in(place.folder)
        return place.agent

    def _move_in(self, folder: TaskFolder) -> None:
        self._folder, self._place = folder, str(folder.path)
        self.workdir = str(self.config.workdir or f"{self._place}/work")
        self.private = f"{self._place}/private"

    def _launch(self) -> Launch:
        return fork

    def _settings(self) -> dict[str, Any]:
        return {"space": None, "user": None, "rlimits": self._rlimits(), "leave": self._leaving()}

    def _leaving(self) -> dict[str, Any]:
        assert self._folder is not None
        return {"groups": list(map(str, self._group.folders)), **self._folder.leaving()}

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": f"{self._place}/home",
            "TMPDIR": f"{self._place}/tmp",
            MARK: self._mark,
        }

    async def _leave_place(self) -> bool:
        if self._link is None or self._folder is None:
            return False
        next_path = self._folder.next_path()
        agent = await self._link.leave({"top": self._place, "next": str(next_path)})
        if self._link.left_nothing:
            self._folder.path = next_path
        elif agent is not None and not await asyncio.to_thread(self._empty):
            agent.close()
            return False
        if agent is None:
            return False
        await keep_place(TaskPlace(agent, self._group, self._folder, self.config.resources))
        return True

    def _empty(self) -> bool:
        assert self._folder is not None
        return self._folder.empty() and self._group.is_unused()  # what is in its files counts there

    def _clean_up(self) -> None:
        clean = self._link is not None and self._link.clean
        if self._link is not None and not clean:
            _end_marked(f"{MARK}={self._mark}".encode())
        if self._folder is not None:
            self._folder.give_back(ended=clean)


def _end_marked(variable: bytes) -> None:
    """Ends what outlived its agent, because that was killed."""
    until = time.monotonic() + SWEEP_SECONDS
    while (pids := _marked(variable)) and time.monotonic() < until:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _marked(variable: bytes) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if variable in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
    return found
