"""The rules about a reward that does not rise: from the start, or any more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from rl_cli.runs.curves import SMOOTH, Curve
from rl_cli.runs.rules.levels import FULL, HISTORY, better, drift, nearly_full, whole_range
from rl_cli.runs.rules.view import Finding, View

ENOUGH = 0.6
"""Of the planned steps, after which a run should have gained something."""
FEW = 30
"""Steps that neither rule says anything about fewer of."""
FLAT_SHARES = (0.4, 0.5, 0.55)
"""Of the planned steps: a reward that has stood still for so long is on a plateau ..."""
LEFT_SHARE = 0.2
"""... which matters as long as this share of them is left."""
UNKNOWN = 100
"""Least steps before a plateau is told where nobody knows how many are planned."""
PACE = 5.0
"""A plateau rises by less than a curve 1 - exp(-PACE t) at that place, t = 1 at the last planned step: the
steepest that a run still learns by, ..."""
STILL = 0.15
"""... and by less than this share of what it rose by before, ..."""
CERTAIN = 1.4
"""... by so many standard errors, ..."""
KNOWN = 0.12
"""... which are at most this share of that: else nobody can tell."""
GAIN_NOISE = 1.2
"""A gain of fewer standard errors is none, ..."""
GAIN_LEAST = 0.03
"""... or one of less than this share of the first level, or of the whole range."""


def no_gain(view: View) -> Iterator[Finding]:
    """Most of the steps are done, and neither reward nor validation is, or was, above where it began."""
    rewards, done, planned = view.grpo["reward/mean"], len(view.grpo), view.limits.total_steps or 0
    if len(rewards) < FEW or done < max(FEW, ENOUGH * planned):
        return
    (first, middle, last), values = _thirds(rewards, len(rewards))
    error = _error(values)
    least = max(GAIN_NOISE * error, GAIN_LEAST * max(abs(first), whole_range(rewards)))
    if last - first > least or middle - first > max(1.5 * error, least):
        return
    if not nearly_full(first, rewards) and not better(view.validations.last(HISTORY)):
        what = f"no gain after {done} steps: reward {first:.3f} at first, {last:.3f} now"
        advice = "stop; try another learning rate, larger groups or easier tasks"
        evidence = {"first": first, "last": last, "step": rewards.steps[-1]}
        yield Finding("no_gain", what, advice, evidence=evidence)


def reward_plateau(view: View) -> Iterator[Finding]:
    """The reward rose, and stands still far from the highest that there is, with much of the run to come."""
    rewards, done = view.grpo["reward/mean"], len(view.grpo["reward/mean"])
    planned = view.limits.total_steps or math.ceil(max(UNKNOWN, done / (1 - LEFT_SHARE)))
    if done > (1 - LEFT_SHARE) * planned:
        return
    began, accuracies = fmean(rewards.first(SMOOTH) or [0.0]), view.validations.last(HISTORY)
    for share in FLAT_SHARES:
        count = math.ceil(share * planned)
        if count < FEW / 2 or done < count + SMOOTH:
            continue
        (first, middle, last), values = _thirds(rewards, count)
        now = (first + middle + last) / 3
        if now - began <= GAIN_LEAST * abs(began):
            continue
        error = _error(values)
        rose = now - began > error / KNOWN
        least = min(STILL, _still_rising(done / planned, share)) * (now - began)
        still = last - first + CERTAIN * error < least
        solved = nearly_full(now, rewards) or (accuracies and accuracies[-1] >= FULL)
        if rose and still and not solved:
            what = f"reward has stood at about {now:.3f} for {count} steps"
            advice = "stop, or go on with harder tasks, larger groups or another learning rate"
            evidence = {"reward": now, "began": began, "steps": count, "step": rewards.steps[-1]}
            yield Finding("reward_plateau", what, advice, evidence=evidence)
            return


def _still_rising(now: float, share: float) -> float:
    """What 1 - exp(-PACE t), at t = `now`, rises by within the newest `share`, of what it rose by before."""
    third = share / 3
    first, middle, last = (
        1 - (math.exp(-PACE * t) - math.exp(-PACE * (t + third))) / (PACE * third)
        for t in (now - share, now - 2 * third, now - third)
    )
    return (last - first) / ((first + middle + last) / 3)


def _thirds(curve: Curve, count: int) -> tuple[tuple[float, float, float], list[float]]:
    """Means of the first, middle and last third of the newest `count` steps, and the values they are of.

    Of many steps only some are looked at, evenly spread.
    """
    values = curve.sampled(count, HISTORY)
    third = len(values) // 3
    return (fmean(values[:third]), fmean(values[third:-third]), fmean(values[-third:])), values


def _error(values: list[float]) -> float:
    """The standard error of the difference of two of those means."""
    return drift(values) * math.sqrt(2 * SMOOTH / (len(values) // 3))
