"""The rules that end a run: what cannot get better, or what was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

from rl_cli.runs.curves import Curve, Curves
from rl_cli.runs.rules.view import Finding, Limits, View

WATCHED = (
    *("loss", "grad_norm", "reward/mean", "reward/std", "entropy", "kl"),
    *("logprob/max_diff", "logprob/mean_diff", "logprob/kl", "completion/mean_tokens"),
)
"""Figures that must be finite, and no larger than a curve holds; elsewhere NaN is an alert."""
SOLVED = 0.99
"""Validation accuracy from which a lack of signal means that nothing is left to learn."""
EQUAL = 1e-6
"""Rewards that scatter by less than this are equal: rounding."""


def not_finite(view: View) -> Iterator[Finding]:
    for phase, curves in (("sft", view.sft), ("grpo", view.grpo)):
        for one in curves.not_finite:
            what = f"{one.name} is {one.in_words()} at {phase} step {one.step}"
            evidence = {"metric": one.name, "step": one.step, "phase": phase}
            if one.name in WATCHED:
                advice = "lower the learning rate; look at the rewards of the last samples"
                message = f"diverged: {what}"
                yield Finding("not_finite", message, advice, "failed", True, evidence, "critical")
            else:
                advice = "find out where this figure comes from"
                yield Finding("not_finite_metric", what, advice, evidence=evidence)


def dead(view: View) -> Iterator[Finding]:
    if view.dead is not None:
        evidence = {"step": _step(view), "how": view.dead}
        advice = "see the end of the trainer's log; resume from the last checkpoint"
        yield Finding(
            "dead", f"the trainer is gone: {view.dead}", advice, "failed", True, evidence, "critical"
        )


def stalled(view: View) -> Iterator[Finding]:
    if view.quiet_seconds > view.limits.stall_seconds:
        last = f"after step {_step(view)}" if _step(view) else "before the first step"
        what = f"stalled {last}: no progress was written for {view.quiet_seconds:.0f} s"
        evidence = {
            "quiet_seconds": round(view.quiet_seconds),
            "limit": view.limits.stall_seconds,
            "step": _step(view),
        }
        advice = "see the end of the trainer's log; raise health.stall_seconds if steps take this long"
        yield Finding("stalled", what, advice, "failed", True, evidence, "critical")


def no_signal(view: View) -> Iterator[Finding]:
    n = view.limits.no_signal_batches
    if not _lacks_signal(view.grpo, n):
        return
    evidence: dict[str, Any] = {"batches": n, "reward": _mean(view, "reward/mean", n), "step": _step(view)}
    if len(view.validations) and view.validations.values[-1] >= SOLVED:
        what = f"nothing is left to learn: validation accuracy is {view.validations.values[-1]:.3f}"
        yield Finding("solved", what, "the run is finished", "finished", evidence=evidence, severity="info")
        return
    errors = _mean(view, "rollouts/errors", n) or 0.0
    if errors >= view.limits.batch_size / 2:
        why, advice = f", {errors:.0f} rollouts a step failed", "mend what the rollouts failed on"
    else:
        reward = evidence["reward"]
        why = f", every group's rewards are equal (mean {reward:.3f})" if reward is not None else ""
        advice = "choose tasks of another difficulty, or a better starting checkpoint"
    what = f"no group carried signal in {n} batches in a row{why}"
    yield Finding("no_signal", what, advice, "failed", evidence=evidence, severity="critical")


def _lacks_signal(curves: Curves, count: int) -> bool:
    """Whether no group carried signal in any of the newest `count` batches.

    Where that is not logged, rewards that all are equal tell. Mostly the newest value alone says no.
    """
    if shares := curves.by_name.get("groups/with_signal"):
        return shares.values[-1] == 0 and shares.last(count) == [0.0] * count
    if spreads := curves.by_name.get("reward/std"):
        equal = [spread < EQUAL for spread in spreads.last(count)] if spreads.values[-1] < EQUAL else []
        return equal == [True] * count
    return False


def target_reached(view: View) -> Iterator[Finding]:
    target = view.limits.target_accuracy
    if _is_reached(view.validations, target):
        step, accuracy = view.validations.steps[-1], view.validations.values[-1]
        what = f"target reached: validation accuracy {accuracy:.3f} >= {target:g} at step {step}"
        evidence = {"accuracy": accuracy, "target": target, "step": step}
        yield Finding("target", what, "the run is finished", "finished", evidence=evidence, severity="info")


def _is_reached(validations: Curve, target: float | None) -> bool:
    return target is not None and len(validations) > 0 and validations.values[-1] >= target


def plateau(view: View) -> Iterator[Finding]:
    patience, best = view.limits.plateau_patience, view.validations.best()
    if best is None or not _is_flat(view.validations, patience):
        return
    what = f"plateau: {patience} validations without a new best ({best[1]:.3f} at step {best[0]})"
    evidence = {"best": best[1], "step": best[0]}
    yield Finding("plateau", what, "the run is finished", "finished", evidence=evidence, severity="info")


def _is_flat(validations: Curve, patience: int | None) -> bool:
    return patience is not None and validations.since_best() >= patience


def signs(limits: Limits, grpo: Curves, sft: Curves, validations: Curve) -> tuple[object, ...]:
    """What the figures say to these rules: while it is the same, the same ones of them find something.

    It takes a microsecond or two, so that every row of a long history can be looked at.
    """
    return (
        len(grpo.not_finite),
        len(sft.not_finite),
        _lacks_signal(grpo, limits.no_signal_batches),
        _is_reached(validations, limits.target_accuracy),
        _is_flat(validations, limits.plateau_patience),
    )


def _mean(view: View, name: str, count: int) -> float | None:
    values = view.grpo[name].last(count)
    return fmean(values) if values else None


def _step(view: View) -> int | None:
    return view.grpo.steps.steps[-1] if len(view.grpo) else None
