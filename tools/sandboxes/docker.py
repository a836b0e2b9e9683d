"""Sandboxes in containers of docker, or of anything that takes the same commands."""

from __future__ import annotations

import asyncio
import os
import shutil

from tools.sandboxes.base import SandboxConfig, SandboxError
from tools.sandboxes.engine import OWNER_LABEL, Engine
from tools.sandboxes.owners import owner
from tools.sandboxes.shell import ShellSandbox
from tools.sandboxes.transport import ProcessTransport

COMMANDS = ("docker", "podman")
HINT = "install docker or podman, or name a command with the option `command`; or choose another kind"
# Takes in the children that others have left, `jobs` those that have ended by then. It waits for a sleep:
# only then is a signal acted on at once. USR1 ends all others without starting any. Where the limit of
# processes leaves no room for its own sleep, which ends a shell, it begins anew.
_FIRST_PROCESS = """\
trap '' HUP INT QUIT TERM
trap 'kill -KILL -1' USR1
trap 'exec /bin/sh -c "$0" "$0"' EXIT
while :; do jobs >/dev/null 2>&1; sleep 3600 & wait $!; done
"""
MAKE_ROOM_SECONDS = 0.1
MAKE_ROOM_TRIES = 5
"""A signal is lost to a first process that begins anew just then."""


def find_commands(config: SandboxConfig) -> list[str]:
    """The programs that may be called. Where DOCKER_HOST names an engine, no other is looked for.

    Raises:
        SandboxError: There is none.
    """
    named = config.options.get("command")
    found = [path for name in ([named] if named else COMMANDS) if (path := shutil.which(name))]
    if not found:
        raise SandboxError(f"docker: no {named or ' or '.join(COMMANDS)} on this computer", HINT)
    return found[:1] if os.environ.get("DOCKER_HOST") else found


class Docker(ShellSandbox):
    """One container per task. The option `command` names another program; DOCKER_HOST is honoured by it."""

    kind = "docker"
    isolates = True
    _options = ("command",)

    @staticmethod
    def why_not() -> str | None:
        """Why no container could be started here. No engine is asked: which one, the configuration says."""
        if any(map(shutil.which, COMMANDS)):
            return None
        return f"there is no {' or '.join(COMMANDS)}"

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._engine: Engine | None = None

    async def _make(self) -> None:
        if not self.config.image or self.config.image.startswith("-"):
            raise SandboxError("docker: no image is named", "set image, such as python:3.12-slim")
        engine = self._engine = await Engine.first_ready(find_commands(self.config))
        await engine.ensure_image(self.config.image)
        self.unbounded = await engine.run(self._id, self._arguments(self.config.image), self.config.resources)
        await engine.as_root(self._id, f"[ -d {self.workdir} ] || mkdir -m 1777 {self.workdir}")

    async def _remove(self) -> None:
        if self._engine:
            await self._engine.remove(self._id)

    async def _make_room(self) -> bool:
        assert self._engine
        for _ in range(MAKE_ROOM_TRIES):
            if not await self._engine.signal(self._id, "USR1"):
                return False
            await asyncio.sleep(MAKE_ROOM_SECONDS)
            if await self._unreachable() is None:
                return True
        return False

    async def _open(self, script: str) -> ProcessTransport:
        assert self._engine
        return await ProcessTransport.start(
            [self._engine.command, "exec", "-i", self._id, "/bin/sh", "-c", script]
        )

    def _arguments(self, image: str) -> list[str]:
        """Of `docker run`, without its limits."""
        config = self.config
        arguments = ["--label", f"{OWNER_LABEL}={owner()}", "--security-opt", "no-new-privileges"]
        arguments += ["--entrypoint", "/bin/sh", "--stop-signal", "KILL"]
        if not config.network:
            arguments += ["--network", "none"]
        if config.workdir:
            folder = config.workdir.absolute()
            if "," in str(folder):
                raise SandboxError(f"docker: cannot share a folder with a comma in its name: {folder}")
            arguments += ["--mount", f"type=bind,source={folder},target={self.workdir}"]
        return [*arguments, image, "-c", _FIRST_PROCESS, _FIRST_PROCESS]
