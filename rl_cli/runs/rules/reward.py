"""The rules about reward and validation accuracy: falling, flat, jumping, drifting apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from statistics import fmean, median
from typing import Any

from rl_cli.runs.curves import SMOOTH, Curve
from rl_cli.runs.rules.levels import HISTORY, WINDOW, drift, rise, scale, scatter
from rl_cli.runs.rules.view import Finding, View

FALL_NOISE = 7.0
"""Standard deviations of a level, below the best one: the best of many is high by chance."""
FLAT_SHARE = 0.5
"""Of the planned steps, after which a reward that does not move is on a plateau ..."""
FLAT_STEPS = 50
"""... and at least so many."""
FULL = 0.9
"""Reward or accuracy from which there is little left to gain."""
GAIN = 0.02
"""Least gain of accuracy that counts."""
LEAP_NOISE = 5.0
"""A leap is so many standard deviations of a step, ..."""
LEAP_SHARE = 0.35
"""... and this share of the reward's level (or 0.4 times its spread in a batch, where that is logged), or 1.5
times as many deviations and half of the share, ..."""
LEAP_PACE = 2.5
"""... and so many times what the reward rose by in the ten steps before."""
LEAP_LEAST = 0.1
"""Least leap of a reward between 0 and 1."""
LEAP_STEPS = 10
"""A leap lasts at least so long; one step may fall back."""
NOISE = 0.08
"""Accuracies are not taken to scatter by more: on 40 problems they do."""
SHOWN = 3
"""Samples in the evidence of a jump."""
SHOWN_CHARACTERS = 300


def reward_falling(view: View) -> Iterator[Finding]:
    """The mean of the newest steps (the more, the longer the run) is well below the best level."""
    rewards = view.grpo["reward/mean"]
    best, recent = rewards.highest(), rewards.last(max(WINDOW, min(2 * SMOOTH, len(rewards) // 8)))
    if best is None or not recent or len(rewards) < 3 * WINDOW:
        return
    last = fmean(recent)
    noise = drift(rewards.until(best[0], HISTORY))
    if best[1] - last > max(view.limits.alerts.reward_drop * scale(rewards), FALL_NOISE * noise):
        what = f"reward fell from {best[1]:.3f} (around step {best[0]}) to {last:.3f}"
        advice = "stop and go back to the best checkpoint; a lower learning rate helps"
        evidence = {"best": best[1], "best_step": best[0], "last": last, "step": rewards.steps[-1]}
        yield Finding("reward_falling", what, advice, evidence=evidence)


def no_gain(view: View) -> Iterator[Finding]:
    """Half of the steps are done and neither reward nor validation was ever above where it began."""
    rewards, done, planned = view.grpo["reward/mean"], len(view.grpo), view.limits.total_steps or 0
    best = rewards.highest()
    if best is None or done < max(4 * WINDOW, planned / 2) or len(rewards) < 4 * WINDOW:
        return
    count = min(len(rewards) // 4, HISTORY)
    first, last = fmean(rewards.first(count) or [0.0]), fmean(rewards.last(count) or [0.0])
    least = 0.05 * abs(first)
    gained = last - first > least
    rose = best[1] - first > max(3 * least, 5 * drift(rewards.until(best[0], HISTORY)))
    accuracies = list(view.validations.values)
    half = len(accuracies) // 2
    better = half > 0 and fmean(accuracies[half:]) > fmean(accuracies[:half]) + GAIN + NOISE / math.sqrt(half)
    if not _full(first, rewards) and not gained and not rose and not better:
        what = f"no gain after {done} steps: reward {first:.3f} at first, {last:.3f} now"
        advice = "stop; try another learning rate, larger groups or easier tasks"
        evidence = {"first": first, "last": last, "step": rewards.steps[-1]}
        yield Finding("no_gain", what, advice, evidence=evidence)


def reward_plateau(view: View) -> Iterator[Finding]:
    """The reward rose, and has stood still for a large part of the run: more steps bring little."""
    rewards, planned = view.grpo["reward/mean"], view.limits.total_steps or 0
    count = math.ceil(max(FLAT_STEPS, FLAT_SHARE * max(planned, len(rewards))))
    if len(rewards) < count + SMOOTH:
        return
    recent, half = rewards.last(min(count, HISTORY)), min(count, HISTORY) // 2
    now, gain = fmean(recent[-half:]), fmean(recent[-half:]) - fmean(recent[:-half])
    gained, noise = now - fmean(rewards.first(SMOOTH)), drift(recent)
    still = gain < 0.03 * gained or (gain < noise and gain < 0.2 * gained)
    if not _full(now, rewards) and gained > 0.5 * noise and still:
        what = f"reward has stood at about {now:.3f} for {count} steps"
        advice = "stop, or go on with harder tasks, larger groups or another learning rate"
        evidence = {"reward": now, "steps": count, "step": rewards.steps[-1]}
        yield Finding("reward_plateau", what, advice, evidence=evidence, severity="info")


def reward_jump(view: View) -> Iterator[Finding]:
    """A leap within a step or two, far beyond what steps differ by, that lasts: learning is gradual."""
    rewards = view.grpo["reward/mean"]
    for since, between in product(range(LEAP_STEPS, LEAP_STEPS + 5), range(3)):
        before, after = rewards.last(5 * WINDOW, since + between), rewards.last(since)
        if len(before) < 5 * WINDOW or len(after) < since or sorted(after)[1] <= max(before[-WINDOW:]):
            continue
        old, new = median(before[-WINDOW:]), median(after[:3])
        spread = view.grpo["reward/std"].last(1, since + between)
        usual = 0.4 * spread[0] if spread else LEAP_SHARE * max(abs(old), _range(rewards))
        pace = median(before[-2 * WINDOW :]) - median(before[: 2 * WINDOW])
        noise, leap = scatter(before), new - old
        usual = max(usual, 2 * LEAP_LEAST) if _up_to_one(rewards) else usual
        clear = leap > LEAP_NOISE * noise and leap > usual
        sharp = leap > 1.5 * LEAP_NOISE * noise and leap > usual / 2
        if leap > LEAP_PACE * pace and (clear or sharp):
            step = rewards.steps[-since]
            what = f"reward jumped from {old:.3f} to {new:.3f} at step {step}: it may be exploited"
            advice = "read the samples: do they earn it? If not, stop and mend the reward function"
            evidence = {"before": old, "after": new, "step": step, "samples": _telling(view)}
            yield Finding("reward_jump", what, advice, evidence=evidence)
            return


def _range(curve: Curve) -> float:
    highest, lowest = curve.highest(), curve.lowest()
    return highest[1] - lowest[1] if highest and lowest else 0.0


def _up_to_one(curve: Curve) -> bool:
    best, lowest = curve.best(), curve.lowest()
    return best is not None and lowest is not None and best[1] <= 1 and lowest[1] >= 0


def _full(level: float, curve: Curve) -> bool:
    """Whether there is little left to gain, for a reward between 0 and 1."""
    return level >= FULL and _up_to_one(curve)


def _telling(view: View) -> list[dict[str, Any]]:
    """The newest samples that earned most."""
    order = sorted(view.samples, key=lambda row: (row.get("step") or 0, row.get("reward") or 0.0))
    return [
        {"step": row.get("step"), "reward": row.get("reward"), "completion": _short(row.get("completion"))}
        for row in order[-SHOWN:]
    ]


def validation_falling(view: View) -> Iterator[Finding]:
    """Two validations in a row are well below the best two in a row."""
    curve, rewards = view.validations, view.grpo["reward/mean"]
    values = curve.last(HISTORY)
    if len(values) < 3:
        return
    pairs = [fmean(values[i : i + 2]) for i in range(len(values) - 1)]
    best, last = max(pairs), pairs[-1]
    gain, error = rise(rewards.last(HISTORY))
    rising = gain > 2 * error
    least = view.limits.alerts.accuracy_drop * (0.5 if rising else 1.0)
    until = pairs.index(best) + 2
    noise = 0.6 * NOISE
    if until > 3:
        trend = (values[until - 1] - values[0]) / (until - 1)
        noise = min(NOISE, max(0.5 * NOISE, scatter([v - trend * i for i, v in enumerate(values[:until])])))
    if best - last > max(least, 3.5 * noise):
        step = curve.steps[len(curve) - len(values) + until - 1]
        while_rising = ", while the reward rises" if rising else ""
        what = f"validation accuracy fell from {best:.3f} (step {step}) to {last:.3f}{while_rising}"
        advice = "stop and keep the best checkpoint"
        if rising:
            advice += "; look at samples for what earns reward without being right"
        evidence = {"best": best, "best_step": step, "last": last, "step": curve.steps[-1]}
        yield Finding("validation_falling", what, advice, evidence=evidence)


def _short(text: object) -> str:
    return text[:SHOWN_CHARACTERS] if isinstance(text, str) else ""
