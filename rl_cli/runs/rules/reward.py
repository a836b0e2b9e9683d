"""The rules about a reward, or a validation accuracy, that falls."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean

from rl_cli.runs.curves import SMOOTH
from rl_cli.runs.rules.levels import HISTORY, WINDOW, accuracy_noise, drift, rise, scale
from rl_cli.runs.rules.view import Finding, View

FALL_NOISE = 8.0
"""Standard deviations of a level, below the best one: the best of many is high by chance."""
FALL_ERRORS = 3.8
"""Standard errors that validations are below their best two: the best of many are high by chance."""
AFTER = 8
"""Newest validations that are taken together, at most."""


def reward_falling(view: View) -> Iterator[Finding]:
    """Both halves of the newest steps (the more, the longer the run) are well below the best level."""
    rewards = view.grpo["reward/mean"]
    best, recent = rewards.highest(), rewards.last(max(WINDOW, min(2 * SMOOTH, len(rewards) // 8)))
    if best is None or not recent or len(rewards) < 3 * WINDOW:
        return
    half = len(recent) // 2
    last = max(fmean(recent[:half]), fmean(recent[half:]))
    fell = best[1] - last
    if fell <= view.limits.alerts.reward_drop * scale(rewards):
        return
    if fell > FALL_NOISE * drift(rewards.until(best[0], HISTORY)):
        what = f"reward fell from {best[1]:.3f} (around step {best[0]}) to {last:.3f}"
        advice = "stop and go back to the best checkpoint; a lower learning rate helps"
        evidence = {"best": best[1], "best_step": best[0], "last": last, "step": rewards.steps[-1]}
        yield Finding("reward_falling", what, advice, evidence=evidence)


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
