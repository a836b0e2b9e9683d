"""What the config of a run allows, as the health rules take it."""

from __future__ import annotations

from typing import Any

from rl_cli.runs import health
from rl_cli.runs.times import seconds_of
from rl_cli.spending.rates import Rate


def limits_of(config: Any, rate: Rate, total_steps: int | None = None) -> health.Limits:
    """The config's bounds, as the rules take them, with what an hour of the run takes."""
    section = config.health
    return health.Limits(
        stall_seconds=section.stall_seconds,
        no_signal_batches=section.no_signal_batches,
        target_accuracy=section.target_accuracy,
        plateau_patience=section.plateau_patience,
        max_hours=config.budget.max_hours,
        max_gpu_hours=config.budget.max_gpu_hours,
        max_dollars=config.budget.max_dollars,
        gpus=rate.gpus,
        gpu_hour=rate.gpu_hour or 0.0,
        deadline=seconds_of(config.budget.deadline),
        batch_size=config.grpo.batch_size,
        total_steps=total_steps or config.grpo.steps,
        checkpoint_every=config.grpo.checkpoint_every if config.backend.name == "trl" else None,
        alerts=section.alerts,
    )
