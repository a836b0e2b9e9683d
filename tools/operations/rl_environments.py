"""Tools: which environments there are, what one is, and choosing one."""

from __future__ import annotations

import asyncio
from typing import Any

from tools.dispatcher import CallContext, Estimate, Risk, ToolError, tool
from tools.operations.draft import Draft, put_draft, runs_own_code


def _fit(profiles: list[str] | tuple[str, ...]) -> tuple[bool, str | None]:
    """Can one of `profiles` run on this machine, and if not, why?"""
    from rl_cli.config.machine import can_train

    reasons = []
    for profile in profiles:
        possible, why_not = can_train(profile)
        if possible:
            return True, None
        reasons.append(why_not or profile)
    return False, "; ".join(reasons)


def _how_to(profile: str, name: str) -> str:
    return (
        "on a machine with an NVIDIA GPU and the train extra installed: "
        f"rl-cli runs start {name} --profile {profile}"
    )


@tool(toolset="rl", risk="read")
async def rl_list_environments() -> dict[str, Any]:
    """List the environments that a model can be trained on, and which of them can be trained on this machine.

    Returns environments[] with name, description, profiles, trainable_here, why_not and stand_in (what to
    offer instead), and machine (cpus, memory_gb, gpus). Next: rl_describe_environment.
    """
    from environments.catalogue import list_environments
    from rl_cli.config.machine import describe_machine
    from rl_cli.core.settings import environments_folder

    rows = []
    for info in await asyncio.to_thread(list_environments, environments_folder()):
        fits, why_not = _fit(info.profiles)
        rows.append(
            {
                "name": info.name,
                "description": info.description,
                "profiles": list(info.profiles),
                "trainable_here": fits and not info.problem,
                "why_not": info.problem or why_not,
                "stand_in": info.stand_in,
            }
        )
    return {"environments": rows, "machine": await asyncio.to_thread(describe_machine)}


def _describe_risk(context: CallContext, arguments: dict[str, Any]) -> Risk:
    return "execute" if runs_own_code(arguments["name"]) else "read"


def _select_risk(context: CallContext, arguments: dict[str, Any]) -> Risk:
    return "execute" if runs_own_code(arguments["name"]) else "write"


def _what(context: CallContext, arguments: dict[str, Any]) -> Estimate:
    from environments.catalogue import find_environment
    from rl_cli.core.settings import environments_folder

    info = find_environment(arguments["name"], environments_folder())
    return Estimate(what="" if info.builtin else f"run the Python file {info.path}")


@tool(toolset="rl", risk="read", risk_of=_describe_risk, estimate=_what)
async def rl_describe_environment(name: str) -> dict[str, Any]:
    """Describe one environment: sizes of its splits, its options, tools, reward, and an example prompt.

    Args:
        name: The environment's name, as rl_list_environments gives it.
    """
    from environments.catalogue import describe
    from rl_cli.core.settings import environments_folder

    description = await asyncio.to_thread(describe, name, {}, environments_folder())
    fits, why_not = _fit(description["profiles"])
    return {
        **description,
        "trainable_here": fits,
        "why_not": why_not,
        "how_to_train_it": None if fits else _how_to(description["profiles"][0], name),
    }


@tool(toolset="rl", risk="write", exclusive=True, risk_of=_select_risk, estimate=_what)
async def rl_select_environment(
    context: CallContext, name: str, profile: str | None = None
) -> dict[str, Any]:
    """Choose the environment to train on and start a fresh config for it. Replaces an earlier draft.

    Args:
        name: The environment's name.
        profile: The named set of defaults to start from; without it, the first of the environment's
            profiles that runs on this machine.
    """
    from environments.catalogue import find_environment
    from rl_cli.config.edit import resolve
    from rl_cli.config.fields import flatten
    from rl_cli.config.machine import can_train, choose_profile, describe_machine
    from rl_cli.config.profiles import load_profile
    from rl_cli.core.settings import environments_folder

    info = await asyncio.to_thread(find_environment, name, environments_folder())
    machine = await asyncio.to_thread(describe_machine)
    chosen = load_profile(profile or choose_profile(info.profiles, machine))
    possible, why_not = can_train(chosen, machine)
    if not possible:
        instead = f"{info.stand_in} can be trained here instead; " if info.stand_in else ""
        raise ToolError(
            "cannot_train_here",
            f"{name} cannot be trained on this machine: {why_not}",
            f"{instead}to train {name} itself, {_how_to(chosen.name, name)}",
        )
    seed = context.state.get("seed")
    changes = {} if seed is None else {"seed": seed}
    config = await asyncio.to_thread(resolve, name, chosen.name, changes, extra_dir=environments_folder())
    put_draft(context, Draft(config, config))
    return {
        "environment": name,
        "profile": chosen.name,
        "backend": config.backend.name,
        "config": flatten(config),
        "locked": chosen.locked,
        "note": chosen.description,
    }
