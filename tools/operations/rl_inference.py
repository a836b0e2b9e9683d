"""Tool: the smoke test that comes before every training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from tools.dispatcher import CallContext, Estimate, tool
from tools.operations.draft import current_draft, scope_of_run

if TYPE_CHECKING:
    from environments.policies.base import Usage
    from rl_cli.core.settings import Settings


LONGEST_HOURS = 1
"""A test that takes longer is ended."""
PROMPT_TOKENS = 1000
"""Of a conversation's first request, where it has to be guessed."""


def _price(model: str, settings: Settings, used: Usage) -> float | None:
    """Dollars; 0 for a model that runs here, None where the price is not known."""
    from rl_cli.agent.models import PROVIDERS, endpoint_of
    from rl_cli.spending.prices import price_list

    provider = model.partition("/")[0]
    if provider not in PROVIDERS and provider not in settings.endpoints:
        return 0.0
    endpoint = endpoint_of(model, settings=settings)
    return price_list(settings.prices.get("models") or {}, endpoint.base_url)(model, used)


def _estimate(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    """What testing these models would take; endpoints that cost money, at most."""
    from environments.policies.base import Usage
    from rl_cli.config.warm_start import STARTING
    from rl_cli.core.settings import home, load_settings
    from rl_cli.spending.estimates import estimate_test
    from rl_cli.spending.rates import rate_here

    config, settings = current_draft(context).config, load_settings()
    models = arguments["models"] or [""]
    rollouts = arguments["tasks"] * arguments["group_size"]
    turns, new = config.grpo.max_turns, config.grpo.max_new_tokens
    most = Usage(turns * (PROMPT_TOKENS + turns * new), turns * new)
    prices = [_price(model, settings, most) for model in models]
    known = [price for price in prices if price is not None]
    dollars = rollouts * sum(known) if len(known) == len(prices) else None
    starting, rate = STARTING in (arguments["models"] or [STARTING]), rate_here(config, settings)
    found = estimate_test(config, home(), rate, rollouts * len(models), dollars, starting)
    who = f"each of {len(models)} models" if len(models) > 1 else "one model"
    what = f"{rollouts} rollouts by {who}"
    if found.seconds is None:
        found = replace(found, basis=f"{found.basis}, and it is ended after {LONGEST_HOURS} h")
    return replace(found, what=what, scope=scope_of_run(config, rollouts * len(models)))


@tool(toolset="rl", risk="execute", deadline=LONGEST_HOURS * 3600, exclusive=True, estimate=_estimate)
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
        draft.config,
        models,
        tasks,
        group_size,
        ensure_home() / "inference_tests",
        context.on_progress,
        session=context.task_id,
    )
    figures = (
        f"{result['model']}: accuracy {result['accuracy']} on {result['rollouts']} rollouts, "
        f"groups without signal {result['groups_without_signal']}"
        for result in answer["results"]
    )
    context.state["inference_test"] = f"inference test: {'; '.join(figures)} ({answer['file']})"
    return answer
