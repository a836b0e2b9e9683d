"""Named toolsets and the modules that define their tools, imported on demand."""

from __future__ import annotations

TOOLSETS: dict[str, tuple[str, ...]] = {
    "math": ("tools.everyday.calculator",),
    "rl": (
        "tools.operations.rl_environments",
        "tools.operations.rl_config",
        "tools.operations.rl_inference",
        "tools.operations.rl_runs",
    ),
}

OPERATIONS = frozenset({"rl"})
"""Toolsets of the assistant. A rollout is never offered them."""
