"""The rules about reward and validation accuracy: falling, flat, jumping, drifting apart."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from rl_cli.runs.curves import SMOOTH
from rl_cli.runs.rules.levels import HISTORY, WINDOW, rise, scale, scatter
from rl_cli.runs.rules.view import Finding, View

FLAT_SHARE = 0.4
"""Of the planned steps, after which a reward that does not move is on a plateau ..."""
FLAT_STEPS = 50
"""... and at least so many."""
FULL = 0.9
"""Reward or accuracy from which there is little left to gain."""
GAIN = 0.02
"""Least gain of accuracy that counts."""
LEAP_STEPS = 3
"""A leap lasts at least so long, and is looked for among twice as many newest steps."""
NOISE = 0.08
"""Accuracies are not taken to scatter by more: on 40 problems they do."""
SHOWN = 3
"""Samples in the evidence of a jump."""
SHOWN_CHARACTERS = 300


def reward_falling(view: View) -> Iterator[Finding]:
    rewards = view.grpo["reward/mean"]
    best, recent = rewards.highest(), rewards.last(HISTORY)
    if best is None or len(rewards) < 3 * WINDOW:
        return
    last = fmean(rewards.last(WINDOW) or [math.nan])
    noise = scatter(recent) * math.sqrt(1 / WINDOW + 1 / SMOOTH)
    if best[1] - last > max(view.limits.alerts.reward_drop * scale(rewards), 4 * noise):
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
    noise = scatter(rewards.last(HISTORY))
    least = 0.05 * abs(first)
    gained = last - first > max(least, 2 * noise * math.sqrt(2 / count))
    rose = best[1] - first > max(3 * least, 4 * noise / math.sqrt(SMOOTH))
    accuracies = view.validations.values
    better = len(accuracies) > 1 and max(accuracies[1:]) > accuracies[0] + GAIN
    if first < FULL and not gained and not rose and not better:
        what = f"no gain after {done} steps: reward {first:.3f} at first, {last:.3f} now"
        advice = "stop; try another learning rate, larger groups or easier tasks"
        evidence = {"first": first, "last": last, "step": rewards.steps[-1]}
        yield Finding("no_gain", what, advice, evidence=evidence)


def reward_flat(view: View) -> Iterator[Finding]:
    """The reward rose, and has stood still for a large part of the run: more steps bring little."""
    rewards, planned = view.grpo["reward/mean"], view.limits.total_steps or 0
    count = math.ceil(max(FLAT_STEPS, FLAT_SHARE * max(planned, len(rewards))))
    if len(rewards) < count + SMOOTH:
        return
    recent = rewards.last(min(count, HISTORY))
    gain, error = rise(recent)
    now, before = fmean(recent[-SMOOTH:]), fmean(rewards.last(SMOOTH, count))
    gained = max(now - fmean(rewards.first(SMOOTH)), scatter(recent))
    if now < FULL and max(gain + 2 * error, now - before) < 0.1 * gained:
        what = f"reward has stood at about {now:.3f} for {count} steps"
        advice = "stop, or go on with harder tasks, larger groups or another learning rate"
        evidence = {"reward": now, "steps": count, "step": rewards.steps[-1]}
        yield Finding("reward_flat", what, advice, evidence=evidence, severity="info")


def reward_jump(view: View) -> Iterator[Finding]:
    """A leap between two steps, far beyond what steps differ by, that lasts: learning is gradual."""
    rewards = view.grpo["reward/mean"]
    for since in range(LEAP_STEPS, 2 * LEAP_STEPS + 1):
        before, after = rewards.last(6 * WINDOW, since), rewards.last(since)
        if len(before) < 2 * WINDOW or len(after) < since:
            return
        old, new = fmean(before[-WINDOW:]), fmean(after)
        spread = view.grpo["reward/std"].last(1, since)
        size = min(after) - max(before[-WINDOW:])
        if size > max(6 * scatter(before), 0.15 * max(abs(old), *spread, 0.0)):
            step = rewards.steps[-since]
            what = f"reward jumped from {old:.3f} to {new:.3f} at step {step}: it may be exploited"
            advice = "read the samples: do they earn it? If not, stop and mend the reward function"
            evidence = {"before": old, "after": new, "step": step, "samples": _telling(view)}
            yield Finding("reward_jump", what, advice, evidence=evidence)
            return


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
    if best - last > max(least, 2.5 * min(scatter(values), NOISE)):
        step = curve.steps[len(curve) - len(values) + pairs.index(best) + 1]
        while_rising = ", while the reward rises" if rising else ""
        what = f"validation accuracy fell from {best:.3f} (step {step}) to {last:.3f}{while_rising}"
        advice = "stop and keep the best checkpoint"
        if rising:
            advice += "; look at samples for what earns reward without being right"
        evidence = {"best": best, "best_step": step, "last": last, "step": curve.steps[-1]}
        yield Finding("validation_falling", what, advice, evidence=evidence)


def _short(text: object) -> str:
    return text[:SHOWN_CHARACTERS] if isinstance(text, str) else ""
