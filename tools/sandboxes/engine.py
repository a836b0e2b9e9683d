"""An engine that takes docker's commands: asked once per process whether it is there and has an image."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from tools.sandboxes.base import Resources, SandboxError
from tools.sandboxes.host_folders import new_folder
from tools.sandboxes.owners import is_left_over
from tools.sandboxes.programs import call, last_line

HINT = "start it, or name another with the option `command`"
OWNER_LABEL = "rl-cli.owner"
ASK_SECONDS = 30.0
RUN_SECONDS = 60.0
SIGNAL_SECONDS = 5.0
PULL_SECONDS = 1800.0
FAILURE_SECONDS = 60.0
"""How long a missing image is taken for missing before the engine is asked again."""

_choosing: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_engines: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Engine]] = WeakKeyDictionary()


class Engine:
    """Shared by all tasks of a process that use the same command and DOCKER_HOST."""

    def __init__(self, command: str) -> None:
        self.command = command
        self._lock = asyncio.Lock()
        self._is_ready = False
        self._images: dict[str, asyncio.Task[None]] = {}
        self._failed_at: dict[str, float] = {}
        self._starting: dict[str, asyncio.Task[tuple[str, ...]]] = {}
        self._unremoved: set[str] = set()
        self._bounds_disk = True

    @classmethod
    def of(cls, command: str) -> Engine:
        """The running event loop's engine of that command."""
        mine = _engines.setdefault(asyncio.get_running_loop(), {})
        key = (command, os.environ.get("DOCKER_HOST", ""))
        return mine.setdefault(key, cls(command))

    @classmethod
    async def first_ready(cls, commands: Sequence[str]) -> Engine:
        """Of the first of these commands whose engine answers; one that has answered is asked first.

        Raises:
            SandboxError: None answers, and why.
        """
        async with _choosing.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            engines = sorted(map(cls.of, commands), key=lambda engine: not engine._is_ready)
            reasons = []
            for engine in engines:
                try:
                    await engine.ready()
                    return engine
                except SandboxError as error:
                    reasons.append(error.message.removeprefix("docker: "))
        raise SandboxError(f"docker: {'; '.join(reasons)}", HINT)

    async def ready(self) -> None:
        """Asks the engine for its containers, and removes those that a killed process left.

        Raises:
            SandboxError: It does not answer.
        """
        async with self._lock:
            if self._is_ready and not self._unremoved:
                return
            listing = ["ps", "--all", "--filter", f"label={OWNER_LABEL}"]
            listing += ["--format", "{{.Names}} {{json .Labels}}"]
            said = await self._ask(listing, "does not answer")
            rows = [line.split(" ", 1) for line in said.splitlines() if " " in line]
            owners = {name: _owner(labels) for name, labels in rows}
            self._unremoved &= owners.keys()
            for name in self._unremoved | {name for name, mark in owners.items() if is_left_over(mark)}:
                await self.remove(name)
            self._is_ready = True

    async def ensure_image(self, image: str) -> None:
        """Pulls an image that is not there; once, however many tasks ask.

        Raises:
            SandboxError: There is none, with the engine's reason.
        """
        if time.monotonic() - self._failed_at.get(image, -FAILURE_SECONDS) >= FAILURE_SECONDS:
            self._failed_at.pop(image, None)
            if (old := self._images.get(image)) and old.done() and (old.cancelled() or old.exception()):
                del self._images[image]
        if image not in self._images:
            self._images[image] = asyncio.create_task(self._find_or_pull(image))
        await asyncio.shield(self._images[image])

    async def _find_or_pull(self, image: str) -> None:
        code, _, _ = await self._call(["image", "inspect", image], ASK_SECONDS)
        if code == 0:
            return
        try:
            await self._ask(["pull", "--quiet", image], f"has no image {image}", PULL_SECONDS)
        except SandboxError as error:
            self._failed_at[image] = time.monotonic()
            raise SandboxError(error.message, "build or load it, or name another one") from None

    async def run(self, name: str, arguments: list[str], resources: Resources) -> tuple[str, ...]:
        """Starts a container. Whoever is cancelled meanwhile removes it: that waits for the start.

        Args:
            arguments: Of `run`: options, image, command.

        Returns:
            The fields of the resources that the engine cannot bound.

        Raises:
            SandboxError: With the engine's reason.
        """
        starting = asyncio.create_task(self._run(name, arguments, resources))
        self._starting[name] = starting
        starting.add_done_callback(lambda _: self._starting.pop(name))
        return await asyncio.shield(starting)

    async def _run(self, name: str, arguments: list[str], resources: Resources) -> tuple[str, ...]:
        common = ["run", "--detach", "--pull", "never", "--name", name, *_limits(resources)]
        if resources.disk_mib is not None and self._bounds_disk:
            disk = ["--storage-opt", f"size={resources.disk_mib}m"]
            code, _, error = await self._call([*common, *disk, *arguments], RUN_SECONDS)
            if code == 0:
                return ()
            if "storage" not in error.lower():
                raise self._error("could not start a container", error)
            await self._remove(name)
            self._bounds_disk = False  # most storage drivers cannot
        await self._ask([*common, *arguments], "could not start a container", RUN_SECONDS)
        return () if resources.disk_mib is None else ("disk_mib",)

    async def as_root(self, name: str, script: str) -> None:
        """Runs a short script in a container, whoever its image makes its commands.

        Raises:
            SandboxError
        """
        await self._ask(["exec", "--user", "0", name, "/bin/sh", "-c", script], "could not set it up")

    async def signal(self, name: str, signal: str) -> bool:
        """Sends a signal to the first process of a container; whether that could be done."""
        code, _, _ = await self._call(["kill", "--signal", signal, name], SIGNAL_SECONDS)
        return code == 0

    async def remove(self, name: str) -> None:
        """Ends and removes a container; where the engine cannot, it is tried again at the next start."""
        if starting := self._starting.get(name):
            await asyncio.wait({starting}, timeout=ASK_SECONDS)
        await self._remove(name)

    async def _remove(self, name: str) -> None:
        self._unremoved.add(name)
        code, _, error = await self._call(["rm", "--force", "--volumes", name], ASK_SECONDS)
        if code == 0 or "no such container" in error.lower():
            self._unremoved.discard(name)

    async def _ask(self, arguments: list[str], what: str, seconds: float = ASK_SECONDS) -> str:
        code, out, error = await self._call(arguments, seconds)
        if code:
            raise self._error(what, error)
        return out

    def _error(self, what: str, reason: str) -> SandboxError:
        return SandboxError(f"docker: the engine of {Path(self.command).name} {what}: {last_line(reason)}")

    async def _call(self, arguments: list[str], seconds: float) -> tuple[int, str, str]:
        folder = await asyncio.to_thread(_folder)
        return await call([os.path.abspath(self.command), *arguments], seconds, folder)


def _owner(labels: str) -> str:
    """From the JSON of a container's labels: podman's is a mapping, docker's one text of `name=value,...`."""
    read = json.loads(labels)
    pairs = dict(pair.partition("=")[::2] for pair in read.split(",")) if isinstance(read, str) else read
    return str(pairs.get(OWNER_LABEL, ""))


@cache
def _folder() -> Path:
    """Where the engine is called: podman notes there that a container ran out of memory."""
    return new_folder()


def _limits(resources: Resources) -> list[str]:
    limits = []
    if resources.cpus is not None:
        limits += ["--cpus", f"{resources.cpus:g}"]
    if resources.memory_mib is not None:
        limits += ["--memory", f"{resources.memory_mib}m", "--memory-swap", f"{resources.memory_mib}m"]
    if resources.processes is not None:
        limits += ["--pids-limit", str(resources.processes)]
    return limits
