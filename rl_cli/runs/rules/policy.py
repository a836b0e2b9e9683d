"""The rules about the policy and its update: entropy, KL, clipping, gradients, logprobs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from rl_cli.runs.rules.levels import WINDOW, level, start
from rl_cli.runs.rules.view import Finding, View

ENTROPY_RISE = 0.1
"""Nats, that entropy must have risen by to explode."""
ENTROPY_FACTOR = 3.0
"""Times its lowest level, too."""
KL_FACTOR, KL_LEAST = 5.0, 0.3
"""A KL above KL_LEAST (nats per token) that many times its level of some steps ago is a blow-up as well."""
SPIKE_WINDOW = 20
SPIKES = 2
"""So many gradients of the last ten far above the median are as bad as one huge one."""
GAPS = {
    "logprob/mean_diff": ("on average", 0.5),
    "logprob/kl": ("by KL", 0.5),
    "logprob/max_diff": ("by up to", 1.0),
}
"""Figures that tell how far sampler and trainer are apart, most telling first: words, share of the bound."""


def entropy_collapse(view: View) -> Iterator[Finding]:
    curve = view.grpo["entropy"]
    first, now = start(curve), level(curve)
    if first is None or now is None or first <= 0:
        return
    if now < view.limits.alerts.entropy_share * first:
        what = f"entropy fell from {first:.3f} to {now:.4f}: rollouts hardly differ any more"
        advice = "raise grpo.temperature, or stop if validation accuracy no longer rises"
        evidence = {"first": first, "last": now, "step": curve.steps[-1]}
        yield Finding("entropy_collapse", what, advice, evidence=evidence)


def entropy_explosion(view: View) -> Iterator[Finding]:
    curve = view.grpo["entropy"]
    first, now, lowest = start(curve), level(curve), curve.lowest()
    if first is None or now is None or lowest is None:
        return
    if now > max(ENTROPY_FACTOR * lowest[1], 1.5 * first, lowest[1] + ENTROPY_RISE):
        what = (
            f"entropy rose from {lowest[1]:.3f} (around step {lowest[0]}) to {now:.3f}: the policy dissolves"
        )
        advice = "stop and go back to an earlier checkpoint; lower grpo.learning_rate or the entropy bonus"
        evidence = {"lowest": lowest[1], "lowest_step": lowest[0], "last": now, "step": curve.steps[-1]}
        yield Finding("entropy_explosion", what, advice, evidence=evidence)


def kl_high(view: View) -> Iterator[Finding]:
    for name, against in (("kl", "the starting checkpoint"), ("kl/update", "the policy before the step")):
        curve = view.grpo[name]
        now, before = level(curve), level(curve, 2 * WINDOW, 2 * WINDOW)
        if now is None:
            continue
        grew = before is not None and now > max(KL_LEAST, KL_FACTOR * before)
        if now > view.limits.alerts.kl or grew:
            what = f"KL against {against} is {now:.2f} nats per token"
            advice = "raise grpo.kl_beta or lower grpo.learning_rate; check samples for reward hacking"
            evidence = {"kl": now, "before": before, "step": curve.steps[-1], "metric": name}
            yield Finding("kl_high", what, advice, evidence=evidence)
            return


def clip_saturated(view: View) -> Iterator[Finding]:
    curve = view.grpo["clip/share"]
    share = level(curve)
    if share is not None and share > view.limits.alerts.clip_share:
        what = f"the probability ratio of {share:.0%} of the tokens is clipped: they teach nothing"
        advice = "lower grpo.learning_rate, or make fewer updates per batch"
        evidence = {"share": share, "step": curve.steps[-1]}
        yield Finding("clip_saturated", what, advice, evidence=evidence)


def gradient_spike(view: View) -> Iterator[Finding]:
    """One gradient far beyond the scatter of those before it, or several that are well beyond it."""
    curve = view.grpo["grad_norm"]
    norms = curve.last(SPIKE_WINDOW + WINDOW)
    if len(norms) < 2 * WINDOW + 1:
        return
    usual = max(median(norms[:-1]), 1e-6)
    logs = [math.log(max(norm, 1e-9)) for norm in norms[:-1]]
    centre = median(logs)
    spread = 1.4826 * median(abs(value - centre) for value in logs)
    factor = view.limits.alerts.gradient_factor
    huge = max(factor * usual, math.exp(min(700.0, centre + 6 * spread)))
    high = max(factor / 2 * usual, math.exp(min(700.0, centre + 4 * spread)))
    often = sum(norm > high for norm in norms[-2 * WINDOW :])
    if norms[-1] > huge or (often >= SPIKES and norms[-1] > high):
        times = f", {often} times in {2 * WINDOW} steps" if often >= SPIKES else ""
        what = f"gradient norm jumped to {norms[-1]:.2f} (median before: {usual:.2f}){times}"
        advice = "watch the next steps; lower grpo.learning_rate if it happens again"
        evidence = {"grad_norm": norms[-1], "median": usual, "step": curve.steps[-1]}
        yield Finding("gradient_spike", what, advice, evidence=evidence)


def logprob_mismatch(view: View) -> Iterator[Finding]:
    """The most telling figure that there is decides; a maximum alone says little about a large batch."""
    for name, (words, share) in GAPS.items():
        curve = view.grpo[name]
        gap = level(curve, 3)
        if gap is None:
            continue
        if abs(gap) > share * view.limits.alerts.logprob_gap:
            what = f"sampler and trainer disagree on logprobs, {words} {gap:.3g} nats"
            advice = "stop: they do not use the same weights, precision or temperature"
            evidence = {"gap": gap, "metric": name, "step": curve.steps[-1]}
            yield Finding("logprob_mismatch", what, advice, evidence=evidence, severity="critical")
        return
