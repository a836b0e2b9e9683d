"""How long a run or an inference test will take and what it will cost, from earlier ones of its kind."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from rl_cli.config.profiles import load_profile
from rl_cli.config.warm_start import must_be_built
from rl_cli.spending.earlier import earlier_runs, earlier_tests
from rl_cli.spending.limits import Limits
from rl_cli.spending.rates import Rate, longest, rate_here, with_run_budget
from rl_cli.spending.units import time_in_words
from tools.spec import Estimate

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.core.settings import Settings


def estimate_run(config: RunConfig, home: str | Path, rate: Rate) -> Estimate:
    """What a run will take. Its own budget bounds what is known from earlier runs, or stands in for it."""
    seconds, basis = run_seconds(config, home)
    bound = longest(config, rate)
    if bound is not None and (seconds is None or bound < seconds):
        seconds, basis = bound, too_long(config, home, rate) or "at most: the run's budget ends it then"
    elif seconds is None:
        basis = f"{basis}, and no budget ends it (budget.max_hours would)"
    return _estimate(seconds, basis, rate)


def too_long(config: RunConfig, home: str | Path, rate: Rate) -> str | None:
    """That a run's budget is expected to end it before its last step; None: it is not."""
    (seconds, basis), bound = run_seconds(config, home), longest(config, rate)
    if seconds is None or bound is None or seconds <= bound:
        return None
    needed, left = time_in_words(seconds / 3600), time_in_words(bound / 3600)
    return (
        f"all {config.grpo.steps} steps need about {needed}, and the run's budget ends it after {left}, "
        f"unfinished ({basis})"
    )


def budget_warning(config: RunConfig, home: str | Path, settings: Settings) -> str | None:
    """The same of a run that is started here, with the budget that the settings give to every run."""
    bounded = with_run_budget(config, Limits.from_settings(settings))
    return too_long(bounded, home, rate_here(bounded, settings))


def estimate_test(
    config: RunConfig,
    home: str | Path,
    rate: Rate,
    rollouts: int,
    dollars: float | None = 0.0,
    starting: bool = True,
) -> Estimate:
    """What an inference test will take.

    Args:
        rollouts: Over all tasks and models.
        dollars: What the models that cost money may take at most; None: it cannot be told.
        starting: The starting checkpoint is among the models.
    """
    earlier = earlier_tests(config, home, starting)
    times = [test.took * max(1.0, rollouts / test.rollouts) for test in earlier]  # loading does not shrink
    seconds, basis = median(times) if times else None, _how_many(len(times), "test")
    if starting and seconds is None:
        seconds, basis = _usual_seconds(config, rollouts, "test")
    elif starting and seconds is not None:
        seconds, basis = _with_warm_start(config, home, seconds, basis)
    found = _estimate(seconds, basis, rate)
    both = None if dollars is None or found.dollars is None else dollars + found.dollars
    return Estimate(found.where, found.seconds, found.gpu_hours, both, found.basis)


def run_seconds(config: RunConfig, home: str | Path) -> tuple[float | None, str]:
    """(seconds of a whole run, what that rests on); from runs of other lengths where there are no equals."""
    steps = config.grpo.steps
    if same := earlier_runs(config, home, steps):
        took = median(run.took for run in same)
        return _with_warm_start(config, home, took, _how_many(len(same), "run"))
    if other := earlier_runs(config, home):
        how = "with fewer or more steps" if all(run.per_step for run in other) else "scaled by their steps"
        took = median(run.took_for(steps) for run in other)
        return _with_warm_start(config, home, took, f"{_how_many(len(other), 'run')}, {how}")
    if config.backend.name != "trl":
        return None, _how_many(0, "run")
    return _usual_seconds(config, config.grpo.steps * config.grpo.batch_size, "run")


def _with_warm_start(config: RunConfig, home: str | Path, seconds: float, basis: str) -> tuple[float, str]:
    """Adds what training the warm start takes, where none is kept that fits."""
    if not must_be_built(config, home):
        return seconds, basis
    built = [test.warm_start for test in earlier_tests(config, home, starting=True) if test.warm_start]
    built += [run.warm_start for run in earlier_runs(config, home) if run.warm_start]
    pace = load_profile(config.profile).pace or {}
    longer = median(built) if built else float(pace.get("start_seconds") or 0.0)
    return seconds + longer, f"{basis}, with its warm start, which is not kept yet"


def _usual_seconds(config: RunConfig, rollouts: int, what: str) -> tuple[float | None, str]:
    """The same of a run, or a test, of so many rollouts, where there is no earlier one to tell it from."""
    pace, none = load_profile(config.profile).pace, _how_many(0, what)
    if pace is None:
        return None, none
    seconds = pace["start_seconds"] + rollouts / pace["rollouts_per_second"]
    return seconds, f"a usual machine for {config.profile}; {none}"


def _estimate(seconds: float | None, basis: str, rate: Rate) -> Estimate:
    where = "this computer" + (f" ({rate.gpus} GPU{'s' if rate.gpus > 1 else ''})" if rate.gpus else "")
    amounts = rate.amounts(seconds or 0.0)
    told = not rate.gpus or rate.gpu_hour == 0 or (rate.priced and seconds is not None)
    return Estimate(where, seconds, amounts.gpu_hours, amounts.dollars if told else None, basis)


def _how_many(count: int, what: str) -> str:
    if not count:
        return f"no earlier {what} of this kind"
    return f"{count} earlier {what}{'s' if count > 1 else ''} of this kind"
