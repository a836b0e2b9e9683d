"""Sandboxes of Modal. Their SDK is an extra; tested against a stand-in for it, not against the service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from importlib import import_module
from typing import Any, Literal

from rl_cli.core.extras import install_command, missing_modules
from tools.sandboxes.base import SandboxConfig, SandboxError
from tools.sandboxes.shell import ShellSandbox

APP = "rl-cli"
LIFETIME_SECONDS = 24 * 3600
"""The longest that Modal allows; a sandbox that is not stopped costs until then."""


class Modal(ShellSandbox):
    """One Modal sandbox per task. Keys come from Modal's own settings."""

    kind = "modal"
    isolates = True

    @staticmethod
    def why_not() -> str | None:
        """Why none could be made from here; asks nobody."""
        return f"it needs the SDK: {install_command('modal')}" if missing_modules("modal") else None

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self._sdk: Any = import_module("modal")
        self._sandbox: Any = None

    async def _make(self) -> None:
        config, resources = self.config, self.config.resources
        if not config.image:
            raise SandboxError("modal: no image is named", "set image, such as python:3.12-slim")
        if config.workdir:
            raise SandboxError("modal: cannot share a folder of this computer", "upload it instead")
        try:
            app = await self._sdk.App.lookup.aio(APP, create_if_missing=True)
            self._sandbox = await self._sdk.Sandbox.create.aio(
                app=app,
                image=self._sdk.Image.from_registry(config.image),
                timeout=LIFETIME_SECONDS,
                block_network=not config.network,
                cpu=resources.cpus and (resources.cpus, resources.cpus),
                memory=resources.memory_mib and (resources.memory_mib, resources.memory_mib),
            )
        except self._sdk.exception.Error as error:
            raise SandboxError(f"modal: no sandbox could be made: {error}") from error
        bounds = {"disk_mib": resources.disk_mib, "processes": resources.processes}
        self.unbounded = tuple(name for name, value in bounds.items() if value is not None)

    async def _remove(self) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            with suppress(self._sdk.exception.Error):  # it has ended by itself
                await sandbox.terminate.aio()

    async def _open(self, script: str) -> ModalTransport:
        if self._sandbox is None:
            raise SandboxError("modal: there is no sandbox")
        error: type[Exception] = self._sdk.exception.Error
        try:
            process = await self._sandbox.exec.aio("/bin/sh", "-c", script, text=False)
        except error as problem:
            raise SandboxError(f"modal: {problem}") from problem
        return ModalTransport(process, error)


class ModalTransport:
    """A process that Modal runs; `error` is what its SDK raises when the sandbox has gone."""

    def __init__(self, process: Any, error: type[Exception]) -> None:
        self._process, self._error = process, error
        self._streams: dict[str, AsyncIterator[bytes]] = {
            "stdout": aiter(process.stdout),
            "stderr": aiter(process.stderr),
        }

    async def send(self, data: bytes) -> bool:
        try:
            self._process.stdin.write(data)
            await self._process.stdin.drain.aio()
        except (self._error, ValueError):  # ValueError: it is closed
            return False
        return True

    async def end_input(self) -> None:
        with suppress(self._error, ValueError):
            self._process.stdin.write_eof()
            await self._process.stdin.drain.aio()

    async def read(self, stream: Literal["stdout", "stderr"]) -> bytes:
        try:
            return await anext(self._streams[stream], b"")
        except self._error:
            return b""

    async def close(self) -> None:
        """Nothing: the connection is the SDK's, and shared."""
