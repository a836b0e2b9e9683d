"""The rules about a reward, or a validation accuracy, that falls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from statistics import fmean

from rl_cli.runs.curves import SMOOTH
from rl_cli.runs.rules import stops
from rl_cli.runs.rules.levels import HISTORY, WINDOW, accuracy_noise, drift, rise, scale, whole_range
from rl_cli.runs.rules.view import Finding, View

BEGIN_AGAIN = "stop, and begin again with a lower grpo.learning_rate: what was learned is lost"
FALL_NOISE = 8.0
"""Standard deviations of a level, below the best one: the best of many is high by chance, but not for long.
A fall that is held for more than 2 SMOOTH steps needs less, ..."""
HELD = (30, 40, 60, 80)
"""... and is looked for in so many, ..."""
HELD_LESS = 2.0
"""... by as many times as it is longer, at most by this."""
FALL_ERRORS = 3.8
"""Standard errors that validations are below their best two: the best of many are high by chance."""
AFTER = 8
"""Newest validations that are taken together, at most."""
GONE_STEPS = 3
"""Steps without signal after which a reward that was there before is gone, ..."""
GONE_SHARE = 0.5
"""... if it is below this share of what it was, ..."""
GONE_ROLLOUTS = 10
"""... which so many rollouts of these steps would have earned: rare rewards go missing by chance."""


def reward_collapse(view: View) -> Iterator[Finding]:
    """The reward fell within a few steps, and since then a group's rollouts earn the same; at any step."""
    if (fall := _collapse(view)) is None:
        return
    before, now, step = fall
    what = f"reward fell from {before:.3f} to {now:.3f} after step {step}; no group carried signal since"
    evidence = {"before": before, "last": now, "fell_after": step, "step": view.grpo.steps.steps[-1]}
    yield Finding("reward_collapse", what, BEGIN_AGAIN, evidence=evidence, severity="critical")


def no_signal(view: View) -> Iterator[Finding]:
    """`stops.no_signal`, with its cause where the reward was there before: other tasks would not help."""
    fall = _collapse(view)
    for finding in stops.no_signal(view):
        if fall is None or finding.verdict != "failed":
            yield finding
            continue
        before, now, step = fall
        what = f"the reward fell from {before:.3f} to {now:.3f} after step {step}"
        message = f"{what}; no group carried signal in {view.limits.no_signal_batches} batches in a row since"
        yield replace(finding, message=message, advice=BEGIN_AGAIN)


def _collapse(view: View) -> tuple[float, float, int] | None:
    """(reward before, reward now, last step before) of a reward that is gone; None for any other."""
    rewards, flat = view.grpo["reward/mean"], _steps_without_signal(view)
    before, now = rewards.last(WINDOW, flat), rewards.last(flat)
    if flat < GONE_STEPS or not before or not now:
        return None
    was, errors = fmean(before), view.grpo["rollouts/errors"].last(flat)
    lowest = -1.0 if whole_range(rewards) > 1 else min(0.0, *now)
    level = fmean(now)
    rare = (was - lowest) * flat * view.limits.batch_size < GONE_ROLLOUTS
    failing = bool(errors) and fmean(errors) >= view.limits.batch_size / 2
    if rare or failing or level - lowest > GONE_SHARE * (was - lowest):
        return None
    return was, level, rewards.steps[-flat - 1]


def _steps_without_signal(view: View) -> int:
    """How many of the newest steps: no group's rewards differed, or, where that is not logged, none did."""
    shares = view.grpo.by_name.get("groups/with_signal")
    values = shares.last(HISTORY) if shares else view.grpo["reward/std"].last(HISTORY)
    least = 0.0 if shares else stops.EQUAL
    return sum(1 for _ in takewhile(lambda value: value <= least, reversed(values)))


def reward_falling(view: View) -> Iterator[Finding]:
    """All parts of the newest steps are well below the best level; if they are many, by less."""
    rewards = view.grpo["reward/mean"]
    best, newest = rewards.highest(), max(WINDOW, min(2 * SMOOTH, len(rewards) // 8))
    if best is None or len(rewards) < 3 * WINDOW:
        return
    least, noise = view.limits.alerts.reward_drop * scale(rewards), math.nan
    for steps in (newest, *HELD):
        recent = rewards.last(steps)
        parts = max(2, steps // SMOOTH)
        if len(recent) < parts or steps + SMOOTH > len(rewards):
            return
        last = _highest_part(recent, parts)
        if best[1] - last <= least:
            continue
        noise = drift(rewards.until(best[0], HISTORY)) if math.isnan(noise) else noise
        longer = min(HELD_LESS, max(1.0, steps / (2 * SMOOTH)))
        if best[1] - last > FALL_NOISE * noise / longer:
            what = f"reward fell from {best[1]:.3f} (around step {best[0]}) to {last:.3f}"
            advice = "stop and go back to the best checkpoint; a lower learning rate helps"
            evidence = {"best": best[1], "best_step": best[0], "last": last, "step": rewards.steps[-1]}
            yield Finding("reward_falling", what, advice, evidence=evidence)
            return


def _highest_part(values: Sequence[float], parts: int) -> float:
    """The highest of the means of so many parts, in order."""
    bounds = [i * len(values) // parts for i in range(parts + 1)]
    return max(fmean(values[start:end]) for start, end in pairwise(bounds))


def validation_falling(view: View) -> Iterator[Finding]:
    """The newest validations, two or more, are well below the best two in a row before them."""
    curve, rewards = view.validations, view.grpo["reward/mean"]
    values = curve.last(HISTORY)
    if len(values) < 4:
        return
    gain, error = rise(rewards.last(HISTORY))
    rising = gain > 2 * error
    least = view.limits.alerts.accuracy_drop * (0.5 if rising else 1.0)
    noise = accuracy_noise(values)
    pairs = [fmean(values[i : i + 2]) for i in range(len(values) - 1)]
    for count in range(2, min(AFTER, len(values) - 2) + 1):
        last, best = fmean(values[-count:]), max(pairs[: len(pairs) - count])
        beyond = FALL_ERRORS * noise * math.sqrt(1 / 2 + 1 / count)
        if best - max(last, values[-1]) <= least or best - last <= beyond:
            continue
        step = curve.steps[len(curve) - len(values) + pairs.index(best) + 1]
        while_rising = ", while the reward rises" if rising else ""
        what = f"validation accuracy fell from {best:.3f} (step {step}) to {last:.3f}{while_rising}"
        advice = "stop and keep the best checkpoint"
        if rising:
            advice += "; look at samples for what earns reward without being right"
        evidence = {"best": best, "best_step": step, "last": last, "step": curve.steps[-1]}
        yield Finding("validation_falling", what, advice, evidence=evidence)
        return
