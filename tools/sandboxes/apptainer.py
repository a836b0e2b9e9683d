"""Sandboxes in instances of Apptainer (once Singularity), as clusters have it. Tested against a stand-in."""

from __future__ import annotations

import shutil
from dataclasses import asdict

from tools.sandboxes.base import SandboxConfig, SandboxError
from tools.sandboxes.programs import call, last_line
from tools.sandboxes.shell import ShellSandbox
from tools.sandboxes.transport import ProcessTransport

COMMANDS = ("apptainer", "singularity")
START_SECONDS = 1800.0
"""The first start of an image that comes from a registry converts it."""
STOP_SECONDS = 60.0


class Apptainer(ShellSandbox):
    """One instance per task; what it writes outside shared folders goes with it."""

    kind = "apptainer"
    isolates = True

    @staticmethod
    def why_not() -> str | None:
        """Why no instance could be started here."""
        return None if any(map(shutil.which, COMMANDS)) else f"there is no {' or '.join(COMMANDS)}"

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._command = next(filter(None, map(shutil.which, COMMANDS)), COMMANDS[0])

    async def _make(self) -> None:
        if not self.config.image or self.config.image.startswith("-"):
            raise SandboxError(
                "apptainer: no image is named", "set image, such as python.sif or docker://debian"
            )
        options = ["--containall", "--no-home", "--writable-tmpfs"]
        if not self.config.network:
            options += ["--net", "--network", "none"]
        if self.config.workdir:
            options += ["--bind", f"{self.config.workdir.absolute()}:{self.workdir}"]
        end = [*options, self.config.image, self._id]
        limits, bounded = self._limits()
        code, _, error = await call([self._command, "instance", "start", *limits, *end], START_SECONDS)
        if code and limits and "cgroup" in error.lower():  # this account may not set limits
            bounded = set()
            code, _, error = await call([self._command, "instance", "start", *end], START_SECONDS)
        if code:
            raise SandboxError(f"apptainer: no instance could be started: {last_line(error)}")
        wanted = asdict(self.config.resources).items()
        self.unbounded = tuple(name for name, value in wanted if value is not None and name not in bounded)

    def _limits(self) -> tuple[list[str], set[str]]:
        """Options, and the fields of the resources that they bound."""
        resources = self.config.resources
        given = {
            "cpus": ("--cpus", resources.cpus, ""),
            "memory_mib": ("--memory", resources.memory_mib, "M"),
            "processes": ("--pids-limit", resources.processes, ""),
        }
        chosen = {
            name: [option, f"{n:g}{unit}"] for name, (option, n, unit) in given.items() if n is not None
        }
        return [word for words in chosen.values() for word in words], set(chosen)

    async def _remove(self) -> None:
        await call([self._command, "instance", "stop", "--force", self._id], STOP_SECONDS)

    async def _open(self, script: str) -> ProcessTransport:
        instance = f"instance://{self._id}"
        return await ProcessTransport.start(
            [self._command, "exec", "--pwd", "/", instance, "/bin/sh", "-c", script]
        )
