"""Tool: the smoke test that comes before every training."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from tools.dispatcher import CallContext, tool
from tools.operations.draft import current_draft


@tool(toolset="rl", risk="execute", deadline=3600)
async def rl_test_inference(
    context: CallContext,
    models: list[str] | None = None,
    tasks: Annotated[int, Field(ge=1, le=64)] = 3,
    group_size: Annotated[int, Field(ge=1, le=64)] = 16,
) -> dict[str, Any]:
    """Roll out a few groups on the draft's environment, before training. Always do this first.

    Returns, per model, accuracy (of rollouts sampled at the config's temperature, not
    greedily), groups_without_signal (share of groups whose rollouts all got the same
    reward: they teach nothing), parse_failures (share), errors by kind, mean_tokens and sample outputs;
    the whole is in `file`. If every group is without signal, change the task or the model before training.

    Args:
        models: Models to test: "starting checkpoint" (the default: what GRPO would start from), run:RUN_ID,
            a model folder, or provider/name.
        tasks: Number of tasks, one group each.
        group_size: Rollouts per task.
    """
    from rl_cli.core.settings import ensure_home
    from rl_cli.training.inference_test import test_inference

    draft = current_draft(context)
    answer = await test_inference(
        draft.config, models, tasks, group_size, ensure_home() / "inference_tests", context.on_progress
    )
    figures = (
        f"{result['model']}: accuracy {result['accuracy']} on {result['rollouts']} rollouts, "
        f"groups without signal {result['groups_without_signal']}"
        for result in answer["results"]
    )
    context.state["inference_test"] = f"inference test: {'; '.join(figures)} ({answer['file']})"
    return answer
