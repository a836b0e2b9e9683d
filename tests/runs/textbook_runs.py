"""Textbook curves, apart from our own generator: rises, steps, falls and flat lines with normal noise."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from rl_cli.runs.health import Limits, inspect, view_of
from rl_cli.runs.progress import Progress

Shape = Callable[[float], float]
"""The reward expected at a time, 0 to 1 of the planned steps."""
VALIDATIONS = 15


def rising(rng: random.Random) -> Shape:
    """A straight line, an exponential approach or a logistic curve, from a low level to a good one."""
    low, high = rng.uniform(0.05, 0.35), rng.uniform(0.6, 0.95)
    pace, middle, width = rng.uniform(1.5, 3.5), rng.uniform(0.35, 0.5), rng.uniform(0.1, 0.15)
    part: Shape = rng.choice(
        [
            lambda t: t,
            lambda t: (1 - math.exp(-pace * t)) / (1 - math.exp(-pace)),
            lambda t: 1 / (1 + math.exp((middle - t) / width)),
        ]
    )
    return lambda t: low + (high - low) * part(t)


def collapse(rng: random.Random) -> Shape:
    """Falls in a straight line, within a twentieth to a fifth of the run, to a share of what it was."""
    rise, begins, takes, share = (
        rising(rng),
        rng.uniform(0.4, 0.7),
        rng.uniform(0.05, 0.2),
        rng.uniform(0, 0.5),
    )
    at = rise(begins)
    return lambda t: rise(t) if t < begins else at * (1 - (1 - share) * min(1.0, (t - begins) / takes))


def jump(rng: random.Random) -> Shape:
    """A slow rise from a low level, a step of 0.3 to 0.6, and a flat line."""
    low, begins, step = rng.uniform(0.1, 0.25), rng.uniform(0.45, 0.75), rng.uniform(0.3, 0.6)
    return lambda t: low + 0.15 * min(t, begins) + (step if t >= begins else 0.0)


def plateau(rng: random.Random) -> Shape:
    """A straight rise by 0.25 to 0.4 in the first tenth to quarter, and a flat line."""
    low, gain, ends = rng.uniform(0.05, 0.25), rng.uniform(0.25, 0.4), rng.uniform(0.1, 0.25)
    return lambda t: low + gain * min(1.0, t / ends)


def flat(rng: random.Random) -> Shape:
    level = rng.uniform(0.05, 0.6)
    return lambda t: level


FAILURES: dict[str, tuple[Callable[[random.Random], Shape], set[str]]] = {
    "reward_collapse": (collapse, {"reward_falling"}),
    "reward_jump": (jump, {"reward_jump"}),
    "reward_plateau": (plateau, {"reward_plateau"}),
    "no_gain": (flat, {"no_gain"}),
    "eval_falling": (rising, {"validation_falling"}),
}


def heard(kind: str | None, seed: int) -> set[str]:
    """The rules that say something before the run is over; `kind`: of FAILURES, None for a healthy run."""
    rng = random.Random(f"textbook/{kind}/{seed}")
    shape = FAILURES[kind][0](rng) if kind else rising(rng)
    steps, noise = rng.choice([80, 150, 300, 500]), rng.uniform(0.01, 0.04)
    overfits, fall = rng.uniform(0.4, 0.7), rng.uniform(0.15, 0.3)
    scale, every = rng.choice([1.0, 1.0, 5.0]), max(1, steps // VALIDATIONS)
    progress, limits, said = Progress(steps), Limits(total_steps=steps), set[str]()
    for step in range(1, steps + 1):
        t = step / steps
        row = {"phase": "grpo", "step": step, "reward/mean": scale * (shape(t) + rng.gauss(0, noise))}
        if step % every == 0:
            lost = fall * min(1.0, max(0.0, (t - overfits) / 0.2)) if kind == "eval_falling" else 0.0
            right = shape(min(t, overfits) if kind == "eval_falling" else t) - lost
            row["accuracy/validation"] = min(1.0, max(0.0, right + rng.gauss(0, 0.02)))
        progress.feed([row], [])
        said |= {finding.rule for finding in inspect(view_of(progress, limits))}
    return said
