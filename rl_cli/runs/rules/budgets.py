"""The rules about time and money: they end a run that has had what it was given."""

from __future__ import annotations

from collections.abc import Iterator

from rl_cli.runs.rules.view import Finding, View
from rl_cli.spending.limits import WARN_SHARE
from rl_cli.spending.units import in_words


def out_of_time(view: View) -> Iterator[Finding]:
    hours, deadline = view.limits.max_hours, view.limits.deadline
    if hours is not None and view.running_seconds > hours * 3600:
        what = f"the budget of {in_words('hours', hours)} is used up"
        evidence = {"used": round(view.running_seconds / 3600, 4), "limit": hours}
        yield Finding("budget", what, "raise budget.max_hours to train longer", "stopped", evidence=evidence)
    elif deadline is not None and view.now > deadline:
        evidence = {"now": view.now, "deadline": deadline}
        yield Finding(
            "deadline", "the deadline has passed", "move budget.deadline", "stopped", evidence=evidence
        )


def over_budget(view: View) -> Iterator[Finding]:
    if view.refused:
        yield Finding("budget", view.refused, "raise that budget to train longer", "stopped")
        return
    limits = view.limits
    gpu_hours = limits.gpus * view.running_seconds / 3600
    for unit, used, limit in (
        ("gpu_hours", gpu_hours, limits.max_gpu_hours),
        ("dollars", gpu_hours * limits.gpu_hour, limits.max_dollars),
    ):
        if limit is None or used < WARN_SHARE * limit:
            continue
        evidence = {"used": round(used, 4), "limit": limit}
        if used >= limit:
            what = f"the run's budget of {in_words(unit, limit)} is used up"
            advice = f"raise budget.max_{unit} to train longer"
            yield Finding("budget", what, advice, "stopped", evidence=evidence)
        else:
            share = f"{in_words(unit, used)} of {in_words(unit, limit)}"
            what = f"{used / limit:.0%} of the run's budget is used: {share}"
            advice = "the run is stopped when all of it is used"
            yield Finding("budget_near", what, advice, evidence=evidence)
