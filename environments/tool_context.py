"""What setup(), teardown() and reward() are given: the tools, in the rollout's own sandbox, and a judge."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.dispatcher import CallContext, handle_function_call
from tools.toolsets import OPERATIONS, TOOLSETS

if TYPE_CHECKING:
    from environments.policies.base import Policy


@dataclass
class ToolContext:
    """One per attempt at a task; its rollout's calls and its verifier's calls meet the same sandbox."""

    task_id: str
    sandbox: Any = None
    judge: Policy | None = None
    """A policy to ask for a verdict, where the caller handed one in."""

    def rollout_context(self, toolsets: tuple[str, ...]) -> CallContext:
        """The context in which the policy's own calls run."""
        return CallContext(caller="rollout", task_id=self.task_id, toolsets=toolsets, sandbox=self.sandbox)

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Calls a tool of any toolset except the assistant's own.

        Returns:
            The result object; `{"ok": false, "error": {...}}` where the tool failed.
        """
        toolsets = tuple(sorted(set(TOOLSETS) - OPERATIONS))
        context = CallContext(caller="reward", task_id=self.task_id, toolsets=toolsets, sandbox=self.sandbox)
        result: dict[str, Any] = json.loads(await handle_function_call(name, arguments, context))
        return result
