"""What a person should hear as a run starts: too high a rate, too small a budget, figures that stay here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rl_cli.config.profiles import load_profile
from rl_cli.runs.supervision.tracking_mode import has_key
from rl_cli.spending.estimates import budget_warning

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.core.settings import Settings

HIGH_RATE = 30.0
"""Times the profile's learning rate: from there on a policy is likely to be destroyed within a few steps."""


def start_warnings(config: RunConfig, home: str | Path, settings: Settings) -> list[str]:
    """One line each; none where all is usual.

    Args:
        config: The run's, resolved.
        home: RL_CLI_HOME.
        settings: Those that bound it.
    """
    found = (_rate(config), budget_warning(config, home, settings), _tracking(config))
    return [line for line in found if line]


def _rate(config: RunConfig) -> str | None:
    usual = _usual_rate(config)
    if config.backend.name == "replay" or not usual or config.grpo.learning_rate <= HIGH_RATE * usual:
        return None
    return (
        f"grpo.learning_rate {config.grpo.learning_rate:g} is {config.grpo.learning_rate / usual:.0f} times "
        f"that of the profile ({usual:g}): the policy may be destroyed within a few steps"
    )


def _usual_rate(config: RunConfig) -> float | None:
    value = load_profile(config.profile).defaults.get("grpo", {}).get("learning_rate")
    return float(value) if value else type(config.grpo)().learning_rate


def _tracking(config: RunConfig) -> str | None:
    """Where `tracking.wandb` asks for more than this machine can give, or for other than WANDB_MODE does."""
    wanted, mode = config.tracking.wandb, os.environ.get("WANDB_MODE")
    if wanted not in ("live", "online"):
        return None
    if mode == "disabled":
        return f"tracking.wandb is {wanted}, but WANDB_MODE=disabled: nothing is recorded for W&B"
    if not has_key():
        return (
            f"tracking.wandb is {wanted}, but there is no W&B key: the figures are recorded here; "
            "rl-cli runs sync sends them later, with a key (WANDB_API_KEY)"
        )
    if mode == "offline":
        return (
            f"tracking.wandb is {wanted}: W&B gets the figures, although WANDB_MODE=offline (auto heeds it)"
        )
    return None
