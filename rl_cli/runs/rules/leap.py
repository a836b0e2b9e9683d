"""The rule about a reward that leaps: learning is gradual, a way to exploit the reward is found at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from statistics import median
from typing import Any

from rl_cli.runs.curves import Curve
from rl_cli.runs.rules.levels import scatter, whole_range
from rl_cli.runs.rules.view import Finding, View

BEFORE, AFTER = 20, 10
"""Steps before and after a leap that it is told by; it is looked for at the newest LAGS steps with so many
after them."""
LAGS = 5
WITHIN = 3
"""Steps that a leap takes at most."""
LEVEL = 5
"""Points whose median is a level next to the leap."""
NOISE = 4.5
"""Standard deviations of one step, scattered as before and after."""
TREND = 1.5
"""Times the trend is taken off: it may be steepest just there."""
SHARE = 0.5
"""Of all that the reward rose by in these steps; a curve that only rises steeply has less of it in so few."""
SPREAD_SHARE = 0.35
"""Least leap, of the spread of the rewards in a batch, or of the range of levels where that is not logged."""
LEAST = 0.2
"""Least leap, of the whole range of a reward from 0, or -1, to 1."""
SHOWN = 3
"""Samples in the evidence."""
SHOWN_CHARACTERS = 300


def reward_jump(view: View) -> Iterator[Finding]:
    """The level leaps within a few steps, by far more than scatter or the trend before or after explains."""
    rewards = view.grpo["reward/mean"]
    newest = rewards.last(BEFORE + AFTER + LAGS + WITHIN)
    if len(newest) < BEFORE + AFTER or max(newest[-AFTER:]) - min(newest) < LEAST * whole_range(rewards):
        return
    for since, between in product(range(AFTER, AFTER + LAGS), range(WITHIN)):
        before, after = rewards.last(BEFORE, since + between), rewards.last(since)
        if len(before) < BEFORE or len(after) < since:
            continue
        spread = view.grpo["reward/std"].last(LEVEL, since + between)
        usual = SPREAD_SHARE * (median(spread) if spread else _range(rewards, before))
        least = max(usual, LEAST * whole_range(rewards))
        levels = _leap(before, after[:AFTER], between, least)
        if levels:
            step = rewards.steps[-since]
            what = (
                f"reward jumped from {levels[0]:.3f} to {levels[1]:.3f} at step {step}: it may be exploited"
            )
            advice = "read the samples: do they earn it? If not, stop and mend the reward function"
            evidence = {"before": levels[0], "after": levels[1], "step": step, "samples": _telling(view)}
            yield Finding("reward_jump", what, advice, evidence=evidence)
            return


def _leap(before: list[float], after: list[float], between: int, least: float) -> tuple[float, float] | None:
    """The levels next to the leap, if there is one; `between`: steps left out, in which it happens."""
    begin, old = median(before[:LEVEL]), median(before[-LEVEL:])
    new, end = median(after[:LEVEL]), median(after[-LEVEL:])
    half = len(after) // 2
    earlier = (old - begin) / (len(before) - LEVEL)
    later = (median(after[half:]) - median(after[:half])) / half
    trend, leap = max(0.0, earlier, later), min(new, end) - old
    beyond = leap - TREND * trend * (LEVEL + between)
    if beyond <= least or leap <= SHARE * (end - begin):
        return None
    noise = math.sqrt((scatter(before) ** 2 + scatter(after) ** 2) / 2)
    return (old, new) if beyond > NOISE * noise else None


def _range(curve: Curve, before: list[float]) -> float:
    """The size of rewards: their range, or the level that they had."""
    highest, lowest = curve.highest(), curve.lowest()
    seen = highest[1] - lowest[1] if highest and lowest else 0.0
    return max(seen, abs(median(before)))


def _telling(view: View) -> list[dict[str, Any]]:
    """The newest samples that earned most."""
    order = sorted(view.samples, key=lambda row: (row.get("step") or 0, row.get("reward") or 0.0))
    return [
        {"step": row.get("step"), "reward": row.get("reward"), "completion": _short(row.get("completion"))}
        for row in order[-SHOWN:]
    ]


def _short(text: object) -> str:
    return text[:SHOWN_CHARACTERS] if isinstance(text, str) else ""
