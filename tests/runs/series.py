"""Synthetic metrics: a healthy run, and one failure at a time put into it."""

from __future__ import annotations

import math
import random
from typing import Any

Row = dict[str, Any]


def healthy(count: int = 40, seed: int = 0) -> list[Row]:
    """A run that learns as the tiny model does: reward from 0.2 to 0.8, noisy."""
    rng = random.Random(seed)

    def around(value: float, share: float = 0.06) -> float:
        return value * (1 + share * rng.gauss(0, 1))

    rows = []
    for step in range(1, count + 1):
        done = 1 - math.exp(-3 * step / count)
        rows.append(
            {
                "phase": "grpo",
                "step": step,
                "loss": rng.gauss(0, 0.02),
                "grad_norm": around(0.5, 0.2),
                "reward/mean": around(0.2 + 0.6 * done),
                "reward/std": 0.4,
                "groups/with_signal": around(0.6),
                "entropy": around(0.6 - 0.4 * done),
                "completion/mean_tokens": around(14.0),
                "completion/clipped": 0.01,
                "rollouts/errors": 0,
                "kl": 0.0,
                "logprob/max_diff": 1e-5,
            }
        )
    return rows


def with_series(rows: list[Row], name: str, values: list[Any]) -> list[Row]:
    """The last len(values) rows get these values for one figure."""
    head, tail = rows[: len(rows) - len(values)], rows[len(rows) - len(values) :]
    return [*head, *({**row, name: value} for row, value in zip(tail, values, strict=True))]
