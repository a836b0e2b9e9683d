"""Tools called in a real sandbox, as a policy calls them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.components import leave_out
from tools.dispatcher import CallContext, handle_function_call
from tools.everyday.task_sandbox import TaskSandbox
from tools.sandboxes import kinds
from tools.sandboxes.base import SandboxConfig

every_kind = pytest.mark.parametrize("kind", ["local", pytest.param("bubblewrap", marks=pytest.mark.soak)])
"""That the tools do the same in all four is shown by test_every_kind."""


class Tools:
    """The tools of one task."""

    def __init__(self, sandbox: TaskSandbox, **fields: Any) -> None:
        fields = {"caller": "rollout", "toolsets": ("terminal", "files"), **fields}
        self.sandbox = sandbox
        self.context = CallContext(task_id="t-1", sandbox=sandbox, **fields)

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(await handle_function_call(name, arguments, self.context))
        return result

    async def run(self, command: str, **options: Any) -> str:
        """What a command printed; it must have gone well."""
        result = await self.call("terminal", command=command, **options)
        assert result.get("exit_code") == 0, result
        assert isinstance(result["stdout"], str)
        return result["stdout"]

    async def error(self, name: str, **arguments: Any) -> tuple[str, str]:
        result = await self.call(name, **arguments)
        assert not result["ok"], result
        return result["error"]["type"], f"{result['error']['message']} | {result['error'].get('hint', '')}"


@asynccontextmanager
async def tools_in(kind: str, env: dict[str, str] | None = None, **fields: Any) -> AsyncIterator[Tools]:
    if why := kinds.usable(kind):
        leave_out(f"sandboxes of kind {kind}: {why}")
    sandbox = TaskSandbox.of(SandboxConfig(kind, env=env or {}))
    try:
        yield Tools(sandbox, **fields)
    finally:
        await sandbox.stop()
