"""Sandboxes of Daytona, reached over the ssh access that it gives.

Its SDK is an extra. Tested against a stand-in for it, not against the service.
"""

from __future__ import annotations

import argparse
import math
import shlex
from contextlib import suppress
from importlib import import_module
from typing import Any

from rl_cli.core.extras import install_command, missing_modules
from tools.sandboxes.base import SandboxConfig, SandboxError
from tools.sandboxes.ssh import Ssh

HOST = "daytona"
LIFETIME_MINUTES = 24 * 60
"""A sandbox that is not stopped costs until then."""


class Daytona(Ssh):
    """One Daytona sandbox per task. Keys come from Daytona's own variables."""

    kind = "daytona"
    isolates = True
    _options = ()

    @staticmethod
    def why_not() -> str | None:
        """Why none could be made from here; asks nobody."""
        return (
            f"it needs the SDK: {install_command('daytona')}" if missing_modules("daytona") else Ssh.why_not()
        )

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._sdk: Any = import_module("daytona")
        self._client: Any = None
        self._sandbox: Any = None
        self.unbounded = () if config.resources.processes is None else ("processes",)

    async def _make(self) -> None:
        config, resources = self.config, self.config.resources
        if not config.image:
            raise SandboxError("daytona: no image is named", "set image, such as python:3.12-slim")
        try:
            self._client = self._sdk.AsyncDaytona()
            self._sandbox = await self._client.create(
                self._sdk.CreateSandboxFromImageParams(
                    image=config.image,
                    network_block_all=not config.network,
                    ephemeral=True,
                    auto_stop_interval=0,
                    ttl_minutes=LIFETIME_MINUTES,
                    resources=self._sdk.Resources(
                        cpu=_whole(resources.cpus),
                        memory=_whole(resources.memory_mib, 1024),
                        disk=_whole(resources.disk_mib, 1024),
                    ),
                )
            )
            access = await self._sandbox.create_ssh_access(expires_in_minutes=LIFETIME_MINUTES)
        except self._sdk.DaytonaError as error:
            raise SandboxError(f"daytona: no sandbox could be made: {error}") from error
        self._host = HOST
        await self._connect([], _settings(access.ssh_command))

    async def _remove(self) -> None:
        await super()._remove()
        client, self._client = self._client, None
        sandbox, self._sandbox = self._sandbox, None
        if client is not None:
            with suppress(self._sdk.DaytonaError):  # it has gone already
                if sandbox is not None:
                    await client.delete(sandbox)
            await client.close()


def _whole(value: float | None, unit: int = 1) -> int | None:
    return None if value is None else math.ceil(value / unit)


def _settings(command: str) -> str:
    """An ssh command as settings of a file: its user is a token, which `ps` would show to everybody."""
    parser = argparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("-p", default="22")
    parser.add_argument("destination")
    given, _ = parser.parse_known_args(shlex.split(command)[1:])
    user, _, host = given.destination.rpartition("@")
    return f"Host {HOST}\nHostName {host}\nPort {given.p}\nUser {user}\nStrictHostKeyChecking accept-new\n"
