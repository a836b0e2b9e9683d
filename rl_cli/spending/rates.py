"""What an hour of a run costs on this machine, and how long the budgets let it run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rl_cli.spending.limits import Limits
from rl_cli.spending.units import Amounts

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.core.settings import Settings


@dataclass(frozen=True)
class Rate:
    """What a run takes per hour of wall clock."""

    gpus: int = 0
    gpu_hour: float | None = None
    """Dollars per GPU hour (the setting prices.gpu_hour); None: not known."""

    @property
    def priced(self) -> bool:
        """Whether its dollars can be told."""
        return not self.gpus or self.gpu_hour is not None

    def amounts(self, seconds: float) -> Amounts:
        """What so many seconds take. Dollars that cannot be told are 0."""
        hours = seconds / 3600
        gpu_hours = self.gpus * hours
        return Amounts(gpu_hours * (self.gpu_hour or 0.0), 0, gpu_hours, hours)

    def seconds(self, *, dollars: float | None = None, gpu_hours: float | None = None) -> float | None:
        """How long that much lasts; None: for ever."""
        lasts = []
        if gpu_hours is not None and self.gpus:
            lasts.append(gpu_hours / self.gpus * 3600)
        if dollars is not None and self.gpus and self.gpu_hour:
            lasts.append(dollars / (self.gpus * self.gpu_hour) * 3600)
        return min(lasts, default=None)


def rate_here(config: RunConfig, settings: Settings) -> Rate:
    """The rate of a run, or of an inference test, on this machine. Looks for GPUs only where it needs one."""
    from rl_cli.config.profiles import load_profile

    if config.backend.name == "replay" or not load_profile(config.profile).needs_gpu:
        return Rate()
    return Rate(_count_gpus(), settings.prices.get("gpu_hour"))


def _count_gpus() -> int:
    """GPUs that a process started from here sees: the machine's, or those that CUDA_VISIBLE_DEVICES names."""
    from rl_cli.config.machine import describe_machine

    found = len(describe_machine()["gpus"])
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return min(found, len(named.split(","))) if named else found


def with_run_budget(config: RunConfig, limits: Limits) -> RunConfig:
    """The config with the settings' budget for a run in its own `budget`, where that is not lower."""
    names = {"dollars": "max_dollars", "gpu_hours": "max_gpu_hours", "hours": "max_hours"}
    lower = {}
    for unit, name in names.items():
        limit, own = limits.run.get(unit), getattr(config.budget, name)
        if limit and (own is None or limit < own):
            lower[name] = float(limit)
    if not lower:
        return config
    return config.model_copy(update={"budget": config.budget.model_copy(update=lower)})


def longest(config: RunConfig, rate: Rate) -> float | None:
    """Seconds after which the run's own budget ends it; None: it does not."""
    budget = config.budget
    by_money = rate.seconds(dollars=budget.max_dollars, gpu_hours=budget.max_gpu_hours)
    bounds = [by_money] if by_money is not None else []
    bounds += [budget.max_hours * 3600] if budget.max_hours is not None else []
    bounds += [_seconds_until(budget.deadline)] if budget.deadline is not None else []
    return min(bounds, default=None)


def _seconds_until(moment: str) -> float:
    return max(0.0, datetime.fromisoformat(moment).timestamp() - time.time())
