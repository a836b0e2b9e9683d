"""Synthetic figures of runs in which nothing is wrong, with the scatter that real GRPO runs show.

Runs differ in steps, scale of the reward, length of completions, pace of learning, size of batch, and in
which figures their trainer logs. Rewards scatter as batches of rollouts do, with heavy tails and slow drift
(tasks that happen to be hard come in a row); gradients have outliers; steps that validate take longer.
A healthy run looks healthy: a person sees its rise through the scatter, and if the rise is over long before
the planned steps are, then because the tasks are solved; elsewhere that is a plateau.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

from rl_cli.runs.rules.view import Room

Row = dict[str, Any]
TRAINERS: dict[str, tuple[str, ...]] = {
    "own": ("kl", "kl/update", "logprob/mean_diff", "logprob/kl", "clip/share"),
    "trl": ("kl/update", "logprob/kl", "rollouts/errors"),
    "prime-rl": ("kl", "kl/update", "reward/std", "logprob/mean_diff", "logprob/max_diff", "rollouts/errors"),
    "verl": ("reward/std", "groups/with_signal", "logprob/kl", "rollouts/errors"),
    "tinker": ("kl/update", "grad_norm", "loss", "reward/std", "completion/clipped", "clip/share"),
}
"""Figures that each does not log."""
SEEN = 4.0
"""A run of 60 steps rises by at least so many standard deviations of a step, a longer one by fewer."""
EARLY = 0.6
"""Of the planned steps: where 90 % of the rise are done by then, the tasks are solved."""
SOLVED = (0.88, 0.97)
FASTEST = 6.0
"""Least steps of the width of an S: from a tenth to nine tenths in 26. What is faster is a leap."""
WORDS = (
    "so",
    "then",
    "we",
    "add",
    "take",
    "find",
    "the",
    "sum",
    "of",
    "two",
    "three",
    "next",
    "it",
    "is",
    "left",
)


@dataclass
class SyntheticRun:
    """What a run would have written, row by row."""

    seed: int
    trainer: str
    steps: int
    batch_size: int
    checkpoint_every: int
    rows: list[Row]
    samples: list[list[Row]]
    """For each row, those that are shown with it."""
    checkpoints: set[int]
    """Steps."""
    room: list[Room]
    """Free disk, and memory, at each row."""
    kind: str | None = None
    """What goes wrong; None: nothing."""
    redrawn: int = 0
    """Runs that were passed over for this one: nobody would have seen the failure in them."""
    begins: int = 0
    """Index of the row at which the failure is in the data."""
    ends: str | None = None
    """How it ends early: "dead" or "stalled"."""
    wrong: str | None = None
    """What runs out: "disk" or "memory"."""
    level: list[float] = field(default_factory=list)
    """Expected success at each row, 0 to 1."""
    span: float = 1.0
    """From the reward of a failure to that of a success."""

    @property
    def random(self) -> random.Random:
        return random.Random(f"{self.kind}/{self.seed}")


def scatter_of(p: float, batch: int, alike: float = 1.5) -> float:
    """The standard deviation of a batch's mean reward, 0 to 1, at this share of successes.

    `alike`: rollouts of one group succeed together, so a batch scatters by more than independent ones.
    """
    return alike * math.sqrt(p * (1 - p)) / math.sqrt(batch)


class Noise:
    """Scatter with heavy tails and a slow drift, of standard deviation 1."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.drift = rng, 0.0
        self.share = rng.uniform(0.0, 0.3)
        """Of the variance that drifts."""

    def __call__(self) -> float:
        self.drift = 0.9 * self.drift + math.sqrt(1 - 0.81) * self.rng.gauss(0, 1)
        heavy = (
            self.rng.gauss(0, 1) / math.sqrt(self.rng.gammavariate(2.5, 1 / 2.5) or 1.0) / math.sqrt(5 / 3)
        )
        return math.sqrt(1 - self.share) * heavy + math.sqrt(self.share) * self.drift


def healthy(seed: int, steps: int | None = None, trainer: str | None = None) -> SyntheticRun:
    """A run that learns.

    Args:
        seed: The same seed gives the same run.
        steps: GRPO steps; default: between 60 and 600, short ones more often.
        trainer: Whose figures it logs, one of TRAINERS; default: drawn.
    """
    rng = random.Random(seed)
    count = steps or round(60 * 10 ** rng.random())
    who = trainer or rng.choice(list(TRAINERS))
    group = rng.choice([4, 8, 16])
    batch = group * rng.choice([8, 16, 32, 64])
    level = _learning(rng, count)
    while level[-1] - level[0] < SEEN * scatter_of(0.5, batch) * math.sqrt(60 / count):
        batch *= 2
    low, high = rng.choice([(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), (-1.0, 1.0), (0.0, 10.0)])
    rows = [Row(phase="grpo", step=i + 1) for i in range(count)]
    _rewards(rng, rows, level, low, high, batch, group)
    _policy(rng, rows, level)
    _rollouts(rng, rows, level, batch)
    every = rng.choice([10, 20, 25])
    validated = max(every, 5 * round(count / rng.uniform(5, 25) / 5))
    tests = rng.choice([64, 128, 200, 400])
    gap = rng.uniform(-0.05, 0.05)
    for i in range(validated - 1, count, validated):
        right = sum(rng.random() < min(0.995, max(0.0, level[i] + gap)) for _ in range(tests))
        rows[i]["accuracy/validation"] = right / tests
    _seconds(rng, rows, validated, every)
    for row in rows:
        for name in TRAINERS[who]:
            row.pop(name, None)
    samples = [_samples(rng, row) for row in rows] if who == "own" else [[] for _ in rows]
    total = 10 ** rng.uniform(10, 12.5)
    free, fill = total * rng.uniform(0.2, 0.9), rng.uniform(0, 0.05) * total / count
    pace = rows[0]["seconds/step"]
    room = [Room(i * pace, free - fill * i + rng.gauss(0, 0.002) * total, total) for i in range(count)]
    saved = set(range(every, count + 1, every))
    return SyntheticRun(
        seed, who, count, batch, every, rows, samples, saved, room, level=level, span=high - low
    )


def _learning(rng: random.Random, count: int) -> list[float]:
    """Expected success (0 to 1) at each step: saturating, S-shaped, or slow and steady."""
    first = rng.uniform(0.05, 0.55)
    gain = rng.uniform(0.15, min(0.6, 0.95 - first))
    shape = rng.choice(["saturating", "sigmoid", "steady"])
    pace, middle = rng.uniform(1.5, 5), rng.uniform(0.2, 0.5)
    width = max(rng.uniform(0.06, 0.15), FASTEST / count)
    done = []
    for i in range(count):
        at = i / count
        if shape == "saturating":
            done.append(1 - math.exp(-pace * at))
        elif shape == "sigmoid":
            done.append(1 / (1 + math.exp((middle - at) / width)))
        else:
            done.append(at ** (0.6 + 0.6 * (pace - 1.5) / 3.5))
    if done[round(EARLY * count)] > 0.9 * done[-1]:
        gain = rng.uniform(*SOLVED) - first
    return [first + gain * part for part in done]


def _rewards(
    rng: random.Random, rows: list[Row], level: list[float], low: float, high: float, batch: int, group: int
) -> None:
    noise, graded = Noise(rng), rng.random() < 0.4
    formatted = rng.uniform(0.5, 0.95)
    alike = rng.uniform(1.0, 2.0)
    for i, row in enumerate(rows):
        p = level[i]
        spread = math.sqrt(p * (1 - p)) * (0.6 if graded else 1.0)
        mean = min(1.0, max(0.0, p + scatter_of(p, batch, alike) * (0.6 if graded else 1.0) * noise()))
        row["reward/mean"] = low + (high - low) * mean
        row["reward/std"] = (high - low) * spread * abs(1 + 0.08 * rng.gauss(0, 1))
        mixed = 1 - mean**group - (1 - mean) ** group if not graded else 0.95
        row["groups/with_signal"] = min(1.0, max(0.15 if p < 0.75 else 0.02, mixed * rng.uniform(0.6, 1.0)))
        row["reward/parts/correct"] = mean
        row["reward/parts/format"] = min(
            1.0, formatted + (1 - formatted) * i / len(rows) + rng.gauss(0, 0.02)
        )


def _policy(rng: random.Random, rows: list[Row], level: list[float]) -> None:
    entropy, keeps = 10 ** rng.uniform(-1, 0.2), rng.uniform(0.3, 1.1)
    bump, wobble = rng.uniform(1.0, 1.4), rng.uniform(0.03, 0.2)
    norm, tail = 10 ** rng.uniform(-1.3, 0.5), rng.uniform(0.2, 0.5)
    kl_end = 10 ** rng.uniform(-3, -0.7)
    clip, gap = 10 ** rng.uniform(-3.5, -1), 10 ** rng.uniform(-3.5, -2)
    exact = rng.random() < 0.5
    noise = Noise(rng)
    for i, row in enumerate(rows):
        at = i / len(rows)
        rise = 1 + (bump - 1) * math.exp(-((at - 0.1) ** 2) / 0.01)
        row["entropy"] = entropy * rise * keeps ** (2 * at if at < 0.5 else 1) * math.exp(wobble * noise())
        outlier = rng.uniform(3, 5) if rng.random() < 0.005 else 1.0
        row["grad_norm"] = norm * outlier * math.exp(rng.gauss(0, tail)) * (1.5 - 0.5 * at)
        row["loss"] = rng.gauss(0, 0.02)
        row["kl"] = kl_end * (1 - math.exp(-3 * at)) * math.exp(rng.gauss(0, 0.2))
        row["kl/update"] = kl_end * 0.02 * math.exp(rng.gauss(0, 0.4))
        row["clip/share"] = min(0.2, clip * math.exp(rng.gauss(0, 0.4)))
        row["learning_rate"] = 1e-6
        row["logprob/mean_diff"] = gap * math.exp(rng.gauss(0, 0.2))
        row["logprob/kl"] = gap * 0.5 * math.exp(rng.gauss(0, 0.3))
        row["logprob/max_diff"] = 1e-5 * math.exp(rng.gauss(0, 0.4)) if exact else None
        if not exact:
            row.pop("logprob/max_diff")


def _rollouts(rng: random.Random, rows: list[Row], level: list[float], batch: int) -> None:
    tokens = 14 * 10 ** rng.uniform(0, 2.46)
    longer = rng.uniform(1.5, 3.0) if len(rows) > 200 and rng.random() < 0.3 else rng.uniform(0.65, 1.5)
    cut, noise = rng.choice([0.01, 0.05, 0.25]) * rng.random(), Noise(rng)
    flaky = rng.choice([0.0, 0.0, 0.01])
    gained = max(level[-1] - level[0], 1e-6)
    for i, row in enumerate(rows):
        done = (level[i] - level[0]) / gained
        row["completion/mean_tokens"] = tokens * longer**done * math.exp(0.05 * noise())
        row["completion/clipped"] = min(1.0, max(0.0, cut * (1 - 0.6 * done) + abs(rng.gauss(0, 0.01))))
        row["rollouts/errors"] = sum(rng.random() < flaky for _ in range(batch))
        row["tokens"] = batch * row["completion/mean_tokens"] * (i + 1)


def _seconds(rng: random.Random, rows: list[Row], validated: int, every: int) -> None:
    base, wobble = 10 ** rng.uniform(-0.3, 2.5), rng.uniform(0.03, 0.25)
    for row in rows:
        longer = row["completion/mean_tokens"] / rows[0]["completion/mean_tokens"]
        seconds = base * (0.4 + 0.6 * longer) * math.exp(rng.gauss(0, wobble))
        seconds *= rng.uniform(1.5, 4) if row["step"] % validated == 0 else 1.0
        row["seconds/step"] = seconds * (1.3 if row["step"] % every == 0 else 1.0)


def _samples(rng: random.Random, row: Row) -> list[Row]:
    """The best and the worst of a group."""
    return [
        {
            "step": row["step"],
            "prompt": f"task {rng.randrange(10_000)}",
            "completion": " ".join(rng.choice(WORDS) for _ in range(rng.randrange(8, 80))),
            "reward": reward,
        }
        for reward in (1.0, 0.0)
    ]
