"""Synthetic runs to try the health rules on: healthy ones, and each way to fail.

`failing(kind, seed)` is `healthy(seed)` with one thing that goes wrong from some step on; `checks(run)` gives
the views that the rules see, one for each row and each heartbeat. Used by the tests and by whoever tunes a
rule: it must not be tuned to please one. A failure is one that a person sees in the curve: where the scatter
of a run hides it, or the run has no room for it, another run is taken, so that a share of found ones is one
of failures that can be seen. `redrawn` says how many runs were passed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count

from rl_cli.runs.health import Limits, View, view_of
from rl_cli.runs.progress import Progress
from rl_cli.runs.rules.view import Room
from rl_cli.runs.synthetic.healthy import TRAINERS, SyntheticRun, healthy, scatter_of

__all__ = ["FAILURES", "HARD", "SyntheticRun", "checks", "failing", "healthy"]

KEPT_SAMPLES = 64
HEARTBEAT_SECONDS = 60.0
OTHERS = 10_000_000
"""From a seed to that of the run that is taken instead."""


class Unseen(Exception):
    """Nobody would see this failure in this run."""


def failing(kind: str, seed: int) -> SyntheticRun:
    """A run in which one thing goes wrong.

    Args:
        kind: One of FAILURES.
        seed: The same seed gives the same run.
    """
    for attempt in count():
        run = _healthy_for(kind, seed + attempt * OTHERS)
        run.kind = kind
        run.begins = max(25, round(run.steps * run.random.uniform(0.35, 0.7)))
        try:
            FAILURES[kind][1](run)
        except Unseen:
            continue
        run.seed, run.redrawn = seed, attempt
        return run
    raise AssertionError


def _healthy_for(kind: str, seed: int) -> SyntheticRun:
    """One whose trainer logs what the failure shows in."""
    offers = [trainer for trainer, lacks in TRAINERS.items() if NEEDS.get(kind) not in lacks]
    if kind == "repetition":
        offers = ["own"]  # nobody else shows samples
    if kind == "logprob_mismatch":
        offers.remove("own")  # it does not always log one
    return healthy(seed, trainer=offers[seed % len(offers)])


def checks(run: SyntheticRun, limits: Limits | None = None) -> Iterator[tuple[int, View]]:
    """(index of the newest row, what the rules see) at each row, and at heartbeats where it is silent."""
    bounds = limits or Limits(
        batch_size=run.batch_size, total_steps=run.steps, checkpoint_every=run.checkpoint_every
    )
    progress = Progress(run.steps)
    samples: list[dict[str, object]] = []
    room: list[Room] = []
    for i, row in enumerate(run.rows):
        saved = [{"kind": "checkpoint", "step": row["step"]}] if row["step"] in run.checkpoints else []
        progress.feed([row], saved)
        samples = [*samples, *run.samples[i]][-KEPT_SAMPLES:]
        room = [*room, run.room[i]][-90:]
        yield i, view_of(progress, bounds, samples=samples, **{run.wrong or "disk": room})
    last = len(run.rows) - 1
    if run.ends == "dead":
        yield last + 1, view_of(progress, bounds, dead="killed by SIGKILL")
    if run.ends == "stalled":
        quiet = bounds.stall_seconds - 2 * HEARTBEAT_SECONDS
        for beat in range(8):
            yield (
                last + beat,
                view_of(progress, bounds, quiet_seconds=quiet + HEARTBEAT_SECONDS * (beat + 0.5)),
            )


def _ramp(run: SyntheticRun, fastest: int, slowest: int) -> Callable[[int], float]:
    """How far the failure is at a row: 0 before it begins, 1 once it is complete."""
    steps = run.random.randint(fastest, slowest)
    return lambda i: min(1.0, max(0.0, (i + 1 - run.begins) / steps))


def _bend(run: SyntheticRun, name: str, end: float, fastest: int, slowest: int) -> None:
    """A figure goes, geometrically, from where it was to `end`, keeping its scatter."""
    at, before = _ramp(run, fastest, slowest), run.rows[max(0, run.begins - 10) : run.begins]
    usual = sum(row[name] for row in before) / len(before)
    for i in range(run.begins, len(run.rows)):
        run.rows[i][name] = run.rows[i][name] * (max(end, 1e-9) / max(usual, 1e-9)) ** at(i)


def _slide(run: SyntheticRun, name: str, end: float, fastest: int, slowest: int) -> None:
    """A figure goes, in a straight line, from what it would be to `end`, keeping its scatter."""
    at, before = _ramp(run, fastest, slowest), run.rows[max(0, run.begins - 10) : run.begins]
    usual = sum(row[name] for row in before) / len(before)
    for i in range(run.begins, len(run.rows)):
        own = run.rows[i][name]
        run.rows[i][name] = (1 - at(i)) * own + at(i) * (end + 0.5 * (own - usual) * (end < usual or 1))


def _flat_reward(run: SyntheticRun) -> None:
    """The reward stops where it is, and scatters on."""
    shift = run.level[run.begins - 1]
    for i in range(run.begins, len(run.rows)):
        gone = run.level[i] - shift
        run.rows[i]["reward/mean"] -= run.span * gone
        for name in ("accuracy/validation", "reward/parts/correct"):
            if name in run.rows[i]:
                run.rows[i][name] = max(0.0, run.rows[i][name] - gone)


def _deviation(run: SyntheticRun) -> float:
    """The standard deviation of one step's reward, where the failure begins."""
    return run.span * scatter_of(run.level[run.begins - 1], run.batch_size, alike=2.0)


def _need(seen: bool) -> None:
    if not seen:
        raise Unseen


def _not_finite(run: SyntheticRun) -> None:
    rng = run.random
    names = [name for name in ("loss", "grad_norm", "entropy", "reward/mean") if name in run.rows[0]]
    name, stays = rng.choice(names), rng.random() < 0.5
    for row in run.rows[run.begins : None if stays else run.begins + 1]:
        row[name] = rng.choice([math.nan, math.inf])


def _cut(how: str) -> Callable[[SyntheticRun], None]:
    def cut(run: SyntheticRun) -> None:
        run.rows, run.ends = run.rows[: run.begins], how
        run.begins += how == "stalled"

    return cut


def _no_signal(run: SyntheticRun) -> None:
    level = run.random.choice([0.0, 1.0])
    for row in run.rows[run.begins :]:
        row["reward/mean"] = level
        for name in ("groups/with_signal", "reward/std"):
            if name in row:
                row[name] = 0.0
    run.begins += 4  # the fifth batch in a row


def _collapse(run: SyntheticRun) -> None:
    """The policy breaks: the reward loses half of its level or more, down to nothing."""
    before = [row["reward/mean"] for row in run.rows[run.begins - 10 : run.begins]]
    usual, lowest = sum(before) / len(before), min(row["reward/mean"] for row in run.rows)
    keep, left = run.random.uniform(0.0, 0.5), len(run.rows) - run.begins
    end = min(lowest, 0.0) + keep * (usual - min(lowest, 0.0))
    _need(usual - end > 5 * _deviation(run))
    _flat_reward(run)
    _slide(run, "reward/mean", end, 3, min(40, left // 2))


def _plateau(run: SyntheticRun) -> None:
    """The reward rose, and stands still, far from solved, with most of the steps still to come."""
    run.begins = round(run.steps * run.random.uniform(0.15, 0.3))
    rise = run.span * (run.level[run.begins - 1] - run.level[0])
    _need(run.level[run.begins - 1] < 0.7 and rise > 0.1 * run.span)
    _need(rise > 8 * _deviation(run) * math.sqrt(60 / run.steps))
    _flat_reward(run)
    run.begins += math.ceil(0.4 * run.steps)


def _no_gain(run: SyntheticRun) -> None:
    run.begins = 1
    _flat_reward(run)
    run.begins = run.steps // 2


def _spikes(run: SyntheticRun) -> None:
    rng = run.random
    for i, row in enumerate(run.rows[run.begins :]):
        if i == 0 or rng.random() < 0.25:
            row["grad_norm"] *= rng.uniform(15, 100)


def _mismatch(run: SyntheticRun) -> None:
    rng = run.random
    for row in run.rows[run.begins :]:
        for name, low, high in (
            ("logprob/mean_diff", 0.1, 1.0),
            ("logprob/kl", 0.1, 1.0),
            ("logprob/max_diff", 0.3, 5.0),
        ):
            if name in row:
                row[name] = rng.uniform(low, high)


def _overfit(run: SyntheticRun) -> None:
    """Validation accuracy falls while the reward goes on rising."""
    rng, every = run.random, max(5, run.steps // 12)
    width = rng.uniform(0.015, 0.04)
    fall = max(rng.uniform(0.15, 0.4), 5 * width)
    run.begins = run.begins // every * every + every - 1
    _need(run.level[run.begins] > fall + 0.05 and run.begins + 4 * every < run.steps)
    for i, row in enumerate(run.rows):
        row.pop("accuracy/validation", None)
        if (i + 1) % every == 0:
            at = min(1.0, max(0.0, (i + 1 - run.begins) / every / 3))
            usual = run.level[min(i, run.begins)]
            row["accuracy/validation"] = min(1.0, max(0.0, usual - fall * at + rng.gauss(0, width)))


def _jump(run: SyntheticRun) -> None:
    """The reward leaps most of the way to the highest there is: no learning does that in three steps."""
    top = {1.0: 1.0, 2.0: 1.0, 10.0: 10.0}[run.span]
    run.begins = max(25, round(run.steps * run.random.uniform(0.2, 0.5)))
    now = top - run.span * (1 - run.level[run.begins - 1])
    leap = run.random.uniform(0.6, 1.0) * (top - now)
    _need(leap > max(0.25 * run.span, 6 * _deviation(run)))
    _slide(run, "reward/mean", now + leap, 1, 3)


def _loops(run: SyntheticRun) -> None:
    rng = run.random
    for samples in run.samples[run.begins :]:
        for sample in samples:
            if rng.random() < 0.8:
                sample["completion"] += " " + "the answer is the answer is " * rng.randint(10, 60)


def _gaming(run: SyntheticRun) -> None:
    right = run.level[run.begins - 1]
    _need(0.6 * right > max(0.15, 5 * _deviation(run) / run.span))
    _slide(run, "reward/parts/correct", 0.4 * right, 5, min(30, (run.steps - run.begins) // 2))
    _slide(run, "reward/parts/format", 1.0, 5, 15)


def _errors(run: SyntheticRun) -> None:
    share = run.random.uniform(0.2, 0.8)
    for row in run.rows[run.begins :]:
        row["rollouts/errors"] = round(run.batch_size * min(1.0, share * run.random.uniform(0.8, 1.2)))


def _no_checkpoints(run: SyntheticRun) -> None:
    late = 2 * run.checkpoint_every + 5
    run.checkpoints = {step for step in run.checkpoints if step < min(run.begins, run.steps - late)}
    run.begins = max(run.checkpoints, default=0) + late - 1


def _runs_out(what: str) -> Callable[[SyntheticRun], None]:
    def runs_out(run: SyntheticRun) -> None:
        run.wrong = what
        start, lasts = run.room[run.begins], run.random.uniform(0.5, 1.0) * (run.steps - run.begins)
        for i in range(run.begins, run.steps):
            left = max(0.0, 1 - (i - run.begins) / lasts)
            run.room[i] = Room(run.room[i].time, start.free * left, start.total)

    return runs_out


def _to(
    name: str, low: float, high: float, fastest: int, slowest: int, times: bool = False
) -> Callable[[SyntheticRun], None]:
    """One figure goes to a value between `low` and `high`, or to so many times what it was."""

    def change(run: SyntheticRun) -> None:
        before = run.rows[run.begins - 10 : run.begins]
        usual = sum(row[name] for row in before) / len(before)
        end = math.exp(run.random.uniform(math.log(low), math.log(high))) * (usual if times else 1.0)
        (_bend if times else _slide)(run, name, end, fastest, slowest)

    return change


def _few_signal(run: SyntheticRun) -> None:
    """Few groups carry signal long before the tasks are solved."""
    _need(run.level[-1] < 0.7)
    _to("groups/with_signal", 0.01, 0.07, 1, 30)(run)


def _longer(low: float, high: float) -> Callable[[SyntheticRun], None]:
    change = _to("completion/mean_tokens", low, high, 5, 30, times=True)

    def lengths(run: SyntheticRun) -> None:
        change(run)
        if run.random.random() < 0.7:
            _flat_reward(run)

    return lengths


FAILURES: dict[str, tuple[set[str], Callable[[SyntheticRun], None]]] = {
    "not_finite": ({"not_finite"}, _not_finite),
    "dead": ({"dead"}, _cut("dead")),
    "stalled": ({"stalled"}, _cut("stalled")),
    "no_signal": ({"no_signal", "solved"}, _no_signal),
    "low_signal": ({"low_signal"}, _few_signal),
    "throughput_drop": ({"slow"}, _to("seconds/step", 3.5, 10, 1, 20, times=True)),
    "reward_plateau": ({"reward_plateau", "no_gain"}, _plateau),
    "no_gain": ({"no_gain"}, _no_gain),
    "reward_collapse": ({"reward_falling"}, _collapse),
    "reward_jump": ({"reward_jump"}, _jump),
    "eval_falling": ({"validation_falling"}, _overfit),
    "entropy_collapse": ({"entropy_collapse"}, _to("entropy", 0.003, 0.06, 5, 40, times=True)),
    "entropy_explosion": ({"entropy_explosion"}, _to("entropy", 4, 12, 5, 40, times=True)),
    "kl_blowup": ({"kl_high"}, _to("kl", 1.5, 20, 3, 30)),
    "length_blowup": ({"length_blowup"}, _longer(3, 8)),
    "length_collapse": ({"length_collapse"}, _longer(0.05, 0.33)),
    "truncation": ({"clipped"}, _to("completion/clipped", 0.6, 0.95, 3, 30)),
    "clip_saturation": ({"clip_saturated"}, _to("clip/share", 0.4, 0.9, 3, 30)),
    "gradient_spikes": ({"gradient_spike"}, _spikes),
    "logprob_mismatch": ({"logprob_mismatch"}, _mismatch),
    "repetition": ({"repetition"}, _loops),
    "format_gaming": ({"format_gaming"}, _gaming),
    "rollout_errors": ({"rollout_errors"}, _errors),
    "checkpoint_overdue": ({"checkpoint_overdue"}, _no_checkpoints),
    "disk_full": ({"disk_low"}, _runs_out("disk")),
    "memory_full": ({"memory_low"}, _runs_out("memory")),
}
"""Kind -> the rules that find it, and how it is put into a run."""
HARD = ("not_finite", "dead", "stalled", "no_signal")
"""These stop a run."""
NEEDS: dict[str, str] = {
    "no_signal": "groups/with_signal",
    "low_signal": "groups/with_signal",
    "kl_blowup": "kl",
    "truncation": "completion/clipped",
    "clip_saturation": "clip/share",
    "gradient_spikes": "grad_norm",
    "rollout_errors": "rollouts/errors",
}
"""The figure without which a kind leaves no trace."""
