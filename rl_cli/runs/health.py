"""Is a run healthy? Pure functions over its metrics: `inspect(view) -> findings`.

A finding either stops the run (`verdict` says as what) or is an alert, with figures and what to do about it.
Rules stop a run only for what cannot get better or what was asked for: figures that are not finite, no
progress, no signal, budget, deadline, target, plateau. A process that died is the supervisor's to notice.
Not covered: whether the reward is the right one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from statistics import fmean, median
from typing import Any, Literal

from rl_cli.runs.progress import Row, finite, number
from rl_cli.spending.limits import WARN_SHARE
from rl_cli.spending.units import in_words

WATCHED = ("loss", "grad_norm", "reward/mean", "reward/std", "entropy", "kl", "logprob/max_diff")
"""Figures that must be finite; elsewhere NaN is an alert."""
NAMES = {"nan": "NaN", "inf": "infinite", "-inf": "minus infinite"}
WINDOW = 5
"""Steps that a figure is judged over."""
HISTORY = 500
"""Steps that a fall is looked for in."""
SOLVED = 0.99
"""Validation accuracy from which a lack of signal means that nothing is left to learn."""


@dataclass(frozen=True)
class Limits:
    """What the config allows; None switches a rule off."""

    stall_seconds: float = 900
    no_signal_batches: int = 5
    target_accuracy: float | None = None
    plateau_patience: int | None = None
    max_hours: float | None = None
    max_gpu_hours: float | None = None
    max_dollars: float | None = None
    gpus: int = 0
    gpu_hour: float = 0.0
    """Dollars per GPU hour."""
    deadline: float | None = None
    """Unix time."""
    batch_size: int = 256
    total_steps: int | None = None


@dataclass(frozen=True)
class View:
    """What the rules see."""

    limits: Limits
    rows: list[Row] = field(default_factory=list)
    """metrics.jsonl, oldest first."""
    validations: list[tuple[int, float]] = field(default_factory=list)
    """(step, accuracy), oldest first."""
    now: float = 0.0
    """Unix time."""
    running_seconds: float = 0.0
    """Since the run started."""
    quiet_seconds: float = 0.0
    """Since any of its files grew."""
    refused: str | None = None
    """Why the budgets of the session or the day let it go on no longer."""

    @cached_property
    def grpo(self) -> list[Row]:
        return [row for row in self.rows if row.get("phase") == "grpo"]


@dataclass(frozen=True)
class Finding:
    rule: str
    message: str
    """One line with the figures in it."""
    action: str
    """What to do about it; for a verdict, what is done."""
    verdict: Literal["failed", "stopped", "finished"] | None = None
    """The state that the run is to end in; None for an alert."""
    at_once: bool = False
    """Saving and a last evaluation make no sense: end the processes."""
    figures: dict[str, Any] = field(default_factory=dict)


Rule = Callable[[View], Iterator[Finding]]


def inspect(view: View) -> list[Finding]:
    """All findings, those that stop the run first."""
    found = [finding for rule in RULES for finding in rule(view)]
    return sorted(found, key=lambda finding: finding.verdict is None)


def not_finite(view: View) -> Iterator[Finding]:
    if not view.rows:
        return
    row = view.rows[-1]
    for name in row:
        value = number(row, name)
        if value is None or math.isfinite(value):
            continue
        what = f"{name} is {NAMES.get(str(value))} at {row.get('phase')} step {row.get('step')}"
        figures = {"metric": name, "step": row.get("step"), "phase": row.get("phase")}
        if name in WATCHED:
            action = "lower the learning rate; look at the rewards of the last samples"
            yield Finding("not_finite", what, action, "failed", at_once=True, figures=figures)
        else:
            yield Finding("not_finite_metric", what, "find out where this figure comes from", figures=figures)


def stalled(view: View) -> Iterator[Finding]:
    if view.quiet_seconds > view.limits.stall_seconds:
        what = f"no progress was written for {view.quiet_seconds:.0f} s"
        figures = {"quiet_seconds": round(view.quiet_seconds), "limit": view.limits.stall_seconds}
        action = "see the end of the trainer's log; raise health.stall_seconds if steps take this long"
        yield Finding("stalled", what, action, "failed", at_once=True, figures=figures)


def no_signal(view: View) -> Iterator[Finding]:
    n = view.limits.no_signal_batches
    rows = [row for row in view.grpo if number(row, "groups/with_signal") is not None][-n:]
    if len(rows) < n or any(number(row, "groups/with_signal") for row in rows):
        return
    figures: dict[str, Any] = {"batches": n, "reward": _mean(rows, "reward/mean")}
    if view.validations and view.validations[-1][1] >= SOLVED:
        what = f"nothing is left to learn: validation accuracy is {view.validations[-1][1]:.3f}"
        yield Finding("solved", what, "the run is finished", "finished", figures=figures)
        return
    errors = _mean(rows, "rollouts/errors") or 0.0
    if errors >= view.limits.batch_size / 2:
        why, action = f", {errors:.0f} rollouts a step failed", "mend what the rollouts failed on"
    else:
        level = figures["reward"]
        why = f", every group's rewards are equal (mean {level:.3f})" if level is not None else ""
        action = "choose tasks of another difficulty, or a better starting checkpoint"
    what = f"no group carried signal in {n} batches in a row{why}"
    yield Finding("no_signal", what, action, "failed", figures=figures)


def out_of_time(view: View) -> Iterator[Finding]:
    hours, deadline = view.limits.max_hours, view.limits.deadline
    if hours is not None and view.running_seconds > hours * 3600:
        what = f"the budget of {in_words('hours', hours)} is used up"
        yield Finding("budget", what, "raise budget.max_hours to train longer", "stopped")
    elif deadline is not None and view.now > deadline:
        yield Finding("deadline", "the deadline has passed", "move budget.deadline", "stopped")


def over_budget(view: View) -> Iterator[Finding]:
    if view.refused:
        yield Finding("budget", view.refused, "raise that budget to train longer", "stopped")
        return
    limits = view.limits
    gpu_hours = limits.gpus * view.running_seconds / 3600
    for unit, used, limit in (
        ("gpu_hours", gpu_hours, limits.max_gpu_hours),
        ("dollars", gpu_hours * limits.gpu_hour, limits.max_dollars),
    ):
        if limit is None or used < WARN_SHARE * limit:
            continue
        figures = {"used": round(used, 4), "limit": limit}
        if used >= limit:
            what = f"the run's budget of {in_words(unit, limit)} is used up"
            yield Finding(
                "budget", what, f"raise budget.max_{unit} to train longer", "stopped", figures=figures
            )
        else:
            share = f"{in_words(unit, used)} of {in_words(unit, limit)}"
            what = f"{used / limit:.0%} of the run's budget is used: {share}"
            yield Finding("budget_near", what, "the run is stopped when all of it is used", figures=figures)


def target_reached(view: View) -> Iterator[Finding]:
    target = view.limits.target_accuracy
    if target is not None and view.validations and view.validations[-1][1] >= target:
        step, accuracy = view.validations[-1]
        what = f"target reached: validation accuracy {accuracy:.3f} >= {target:g} at step {step}"
        figures = {"accuracy": accuracy, "target": target, "step": step}
        yield Finding("target", what, "the run is finished", "finished", figures=figures)


def plateau(view: View) -> Iterator[Finding]:
    patience = view.limits.plateau_patience
    if patience is None or not view.validations:
        return
    best = max(range(len(view.validations)), key=lambda i: view.validations[i][1])
    if len(view.validations) - 1 - best >= patience:
        step, accuracy = view.validations[best]
        what = f"plateau: {patience} validations without a new best ({accuracy:.3f} at step {step})"
        yield Finding("plateau", what, "the run is finished", "finished", figures={"best": accuracy})


def reward_falling(view: View) -> Iterator[Finding]:
    rewards = finite(view.grpo[-HISTORY:], "reward/mean")
    if len(rewards) < 3 * WINDOW:
        return
    means = [fmean(rewards[i : i + WINDOW]) for i in range(len(rewards) - WINDOW + 1)]
    best, last = max(means), means[-1]
    variance = fmean((b - a) ** 2 for a, b in pairwise(rewards)) / 2  # of a step, whatever the trend
    noise = math.sqrt(variance / WINDOW)
    if best - last > max(0.2 * abs(best), 4 * noise):
        what = f"reward fell from {best:.3f} to {last:.3f} (means of {WINDOW} steps)"
        action = "stop and go back to the best checkpoint; a lower learning rate helps"
        yield Finding("reward_falling", what, action, figures={"best": best, "last": last})


def entropy_collapse(view: View) -> Iterator[Finding]:
    first, last = _ends(view.grpo, "entropy")
    if first is None or last is None:
        return
    if last < 0.05 and last < 0.1 * first:
        what = f"entropy fell from {first:.3f} to {last:.4f}: rollouts hardly differ any more"
        action = "raise grpo.temperature, or stop if validation accuracy no longer rises"
        yield Finding("entropy_collapse", what, action, figures={"first": first, "last": last})


def clipped(view: View) -> Iterator[Finding]:
    share = _full_window(view.grpo, "completion/clipped")
    if share is not None and share > 0.5:
        what = f"{share:.0%} of the completions were cut off at the token limit"
        yield Finding("clipped", what, "raise grpo.max_new_tokens", figures={"share": share})


def kl_high(view: View) -> Iterator[Finding]:
    kl = _full_window(view.grpo, "kl")
    if kl is not None and kl > 1.0:
        what = f"KL against the starting checkpoint is {kl:.2f} per token"
        action = "raise grpo.kl_beta or lower grpo.learning_rate; check samples for reward hacking"
        yield Finding("kl_high", what, action, figures={"kl": kl})


def rollout_errors(view: View) -> Iterator[Finding]:
    errors = _full_window(view.grpo, "rollouts/errors", steps=3)
    if errors is None or errors <= 0.1 * view.limits.batch_size:
        return
    prefix = "rollouts/errors/"
    kinds = {n.removeprefix(prefix): _mean(view.grpo[-3:], n) for n in view.grpo[-1] if n.startswith(prefix)}
    most = max(kinds, key=lambda kind: kinds[kind] or 0, default="unknown")
    what = f"{errors:.0f} of {view.limits.batch_size} rollouts a step fail (mostly: {most})"
    action = f"mend the cause ({most}); such rollouts carry no weight in training"
    yield Finding("rollout_errors", what, action, figures={"errors": errors, "kinds": kinds})


def low_signal(view: View) -> Iterator[Finding]:
    share = _full_window(view.grpo, "groups/with_signal")
    if share is not None and 0 < share < 0.1:
        what = f"only {share:.0%} of the groups carry signal"
        action = "larger groups, or tasks that are solved sometimes but not always"
        yield Finding("low_signal", what, action, figures={"share": share})


def logprob_mismatch(view: View) -> Iterator[Finding]:
    gap = _full_window(view.grpo, "logprob/max_diff", steps=3)
    if gap is not None and gap > 0.1:
        what = f"sampler and trainer disagree on log-probabilities by up to {gap:.2f}"
        action = "stop: they do not use the same weights, precision or temperature"
        yield Finding("logprob_mismatch", what, action, figures={"max_diff": gap})


def gradient_spike(view: View) -> Iterator[Finding]:
    norms = finite(view.grpo[-21:], "grad_norm")
    if len(norms) >= 11 and norms[-1] > 10 * max(median(norms[:-1]), 1e-6):
        what = f"gradient norm jumped to {norms[-1]:.2f} (median before: {median(norms[:-1]):.2f})"
        action = "watch the next steps; lower grpo.learning_rate if it happens again"
        yield Finding("gradient_spike", what, action, figures={"grad_norm": norms[-1]})


def no_gain(view: View) -> Iterator[Finding]:
    """Half of the steps are done and neither reward nor validation is above where it began."""
    done, planned = len(view.grpo), view.limits.total_steps or 0
    first, last = _ends(view.grpo, "reward/mean")
    if first is None or last is None or done < max(4 * WINDOW, planned / 2):
        return
    accuracies = [accuracy for _, accuracy in view.validations]
    better = len(accuracies) > 1 and max(accuracies[1:]) > accuracies[0] + 0.02
    if last - first < max(0.02, 0.05 * abs(first)) and not better:
        what = f"no gain after {done} steps: reward {first:.3f} at first, {last:.3f} now"
        action = "stop; try another learning rate, larger groups or easier tasks"
        yield Finding("no_gain", what, action, figures={"first": first, "last": last})


def validation_falling(view: View) -> Iterator[Finding]:
    if len(view.validations) < 3:
        return
    step, best = max(view.validations, key=lambda pair: pair[1])
    last = view.validations[-1][1]
    if best - last > 0.1:
        what = f"validation accuracy fell from {best:.3f} (step {step}) to {last:.3f}"
        action = "stop and keep the best checkpoint"
        yield Finding("validation_falling", what, action, figures={"best": best, "last": last})


RULES: tuple[Rule, ...] = (
    *(not_finite, stalled, no_signal, target_reached, plateau, out_of_time, over_budget),
    *(reward_falling, validation_falling, entropy_collapse, clipped, kl_high, rollout_errors),
    *(low_signal, logprob_mismatch, gradient_spike, no_gain),
)


def _mean(rows: list[Row], name: str) -> float | None:
    values = finite(rows, name)
    return fmean(values) if values else None


def _ends(rows: list[Row], name: str) -> tuple[float | None, float | None]:
    """The mean of the first and of the last steps; None before there are enough for both."""
    if len(rows) < 2 * WINDOW:
        return None, None
    return _mean(rows[:WINDOW], name), _mean(rows[-WINDOW:], name)


def _full_window(rows: list[Row], name: str, steps: int = WINDOW) -> float | None:
    """The median of the last `steps` rows, which one odd step does not move; None for fewer rows."""
    values = finite(rows[-steps:], name)
    return median(values) if len(values) == steps else None
