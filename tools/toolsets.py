"""Named toolsets and the modules that define their tools, imported on demand."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from rl_cli.core.errors import BadUsage, did_you_mean

TOOLSETS: dict[str, tuple[str, ...]] = {
    "math": ("tools.everyday.calculator",),
    "rl": (
        "tools.operations.rl_environments",
        "tools.operations.rl_config",
        "tools.operations.rl_inference",
        "tools.operations.rl_runs",
        "tools.operations.rl_resume",
    ),
    "wandb": ("tools.operations.wandb_runs",),
}

OPERATIONS = frozenset({"rl", "wandb"})
"""Toolsets of the assistant. A rollout is never offered them."""


def load_toolsets(names: Iterable[str]) -> None:
    """Imports the modules that define these toolsets.

    Raises:
        BadUsage: There is no such toolset (with the nearest names).
    """
    for name in names:
        if name not in TOOLSETS:
            raise unknown_toolset(name, list(TOOLSETS))
        for module in TOOLSETS[name]:
            import_module(module)


def unknown_toolset(name: str, known: list[str]) -> BadUsage:
    return BadUsage(f"unknown toolset '{name}'", did_you_mean(name, known))
