from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tools.operations.rl_inference
import tools.operations.rl_runs  # noqa: F401
from rl_cli.agent.approvals import Approvals
from rl_cli.config.edit import resolve
from tools.dispatcher import ApprovalRequest, CallContext, find_tool
from tools.operations.draft import Draft, put_draft

TEST = {"models": None, "tasks": 3, "group_size": 16}


def request(tool: str, environment: str, changes: dict[str, Any]) -> ApprovalRequest:
    """The call of a tool in a session whose draft is this."""
    config = resolve(environment, "cpu-demo", changes)
    context = CallContext(caller="chat", task_id="s", toolsets=("rl",))
    put_draft(context, Draft(config, config))
    spec, arguments = find_tool(tool), TEST if tool == "rl_test_inference" else {}
    assert spec
    assert spec.estimate
    return ApprovalRequest(spec, arguments, spec.estimate(context, arguments))


@pytest.mark.parametrize("tool", ["rl_start_training", "rl_test_inference"])
def test_an_answer_for_the_session_does_not_cover_a_changed_draft(home: Path, tool: str) -> None:
    asked: list[str] = []

    async def ask(question: str, choices: Sequence[str]) -> str:
        asked.append(question)
        return "n" if len(asked) > 1 else "s"

    async def allowed(environment: str, **changes: Any) -> bool:
        verdict = await approvals(request(tool, environment, changes))
        return verdict.allow

    async def main() -> None:
        assert await allowed("gsm8k-mini")
        assert await allowed("gsm8k-mini", seed=5)
        assert len(asked) == 1
        assert not await allowed("tool-math")
        assert len(asked) == 2
        if tool == "rl_start_training":
            assert await allowed("gsm8k-mini", **{"grpo.steps": 20})
            assert not await allowed("gsm8k-mini", **{"grpo.steps": 4000})

    approvals = Approvals(interactive=True, ask=ask)
    asyncio.run(main())
