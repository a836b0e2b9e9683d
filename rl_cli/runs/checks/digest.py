"""A run in a few lines, for whoever judges it: bounded whatever the run, its own words quoted and masked."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from environments.policies.endpoints.token_estimate import ASCII_PER_TOKEN, text_tokens
from rl_cli.core.cuts import one_line
from rl_cli.core.json_text import repair_surrogates
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.checks.monitor import Why
from rl_cli.runs.curves import Curve
from rl_cli.runs.outcome import notes, outcome_of
from rl_cli.runs.progress import Progress, progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import duration
from rl_cli.runs.tracking_file import disagreements

DIGEST_TOKENS = 850
"""The most that a digest takes, by our own estimate."""
NAME_TOKENS, TEXT_TOKENS = 24, 60
LOOKED_AT = 4_000
"""Characters of a text that are looked at for secrets; far more than are shown."""
POINTS = 10
"""Of the reward's curve."""
ALERTS = 6
"""Rules whose newest alert is shown."""
ENDS = 5
"""Steps that a figure's beginning and end are averaged over."""
FIGURES = (
    "entropy",
    "kl",
    "grad_norm",
    "groups/with_signal",
    "completion/mean_tokens",
    "completion/clipped",
    "clip/share",
    "logprob/mean_diff",
    "logprob/max_diff",
    "rollouts/errors",
    "loss",
    "seconds/step",
)


def digest(run: RunDir, why: Why, alerts: Sequence[dict[str, Any]], progress: Progress | None = None) -> str:
    """What there is to judge a run by.

    Args:
        run: The run.
        why: Why it is judged now.
        alerts: Those that are new.
        progress: What its files add up to; None reads them.

    Returns:
        Lines of at most DIGEST_TOKENS in all; those that matter least are left out where they are too many.
    """
    known = progress or progress_of(run)
    said, left = [], DIGEST_TOKENS
    for line in _lines(run, why, list(alerts), known):
        line = repair_surrogates(line)
        cost = text_tokens(f"{line}\n")
        if cost <= left:
            said.append(line)
            left -= cost
    return "\n".join(said)


def evidence(progress: Progress, alerts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures that a decision rests on, for the run's record."""
    figures = {key: value for key, value in progress.report().items() if value is not None}
    rules = list(dict.fromkeys(one_line(str(alert.get("rule")), 40) for alert in alerts))[:ALERTS]
    return {**figures, **({"alerts": rules} if rules else {})}


def _lines(run: RunDir, why: Why, new: list[dict[str, Any]], known: Progress) -> Iterator[str]:
    """The most telling first."""
    summary, events = run.summary(), run.events()
    yield f"Why now: {why}"
    names = ", ".join(
        f"{key} {_quoted(summary[key], NAME_TOKENS)}"
        for key in ("environment", "profile", "model", "backend")
        if summary[key]
    )
    yield f"Run: {_quoted(run.id, NAME_TOKENS)}, {names}"
    if summary["backend"] == "wandb":
        yield "It is a W&B run that somebody else started: it is not stopped without the person's word."
    yield _where(summary, known)
    for line in disagreements(run)[:2]:
        yield f"W&B and this machine disagree: {_quoted(line, TEXT_TOKENS)}"
    if why == "end":
        yield f"Outcome: {_quoted(outcome_of(run), 2 * TEXT_TOKENS)}"
        for note in notes(run, run.state(), events)[:3]:
            yield f"Note: {_quoted(note, TEXT_TOKENS)}"
    elif summary["reason"]:
        yield f"Reason of the state: {_quoted(summary['reason'], TEXT_TOKENS)}"
    yield from _reward(known)
    yield from _alerts(new)
    if known.validations:
        newest = known.validations.points()[-6:]
        yield "Validation accuracy by step: " + ", ".join(
            f"{step:.0f}: {value:.3f}" for step, value in newest
        )
    yield from _figures(known)
    if found := known.grpo.not_finite[:3]:
        told = (f"{_quoted(one.name, 12)} is {one.in_words()} at step {one.step}" for one in found)
        yield f"Not finite or too large: {', '.join(told)}"
    if earlier := _rules(known.current_alerts) - _rules(new):
        counts = ", ".join(f"{_quoted(rule, 12)} x {count}" for rule, count in earlier.most_common(ALERTS))
        yield f"Alerts before: {counts}"
    yield from _decisions(events)
    if missed := DueChecks(run).missed():
        yield f"Due times that passed unwatched: {missed}"


def _where(summary: dict[str, Any], known: Progress) -> str:
    report = known.report()
    total = f" of {report['total_steps']}" if report["total_steps"] else ""
    parts = [f"State: {summary['state']}"]
    parts += [f"phase {_quoted(report['phase'], 12)}"] if report["phase"] else []
    parts.append(f"step {report['step']}{total}")
    if report["eta_seconds"] and summary["state"] == "running":
        parts.append(f"{duration(report['eta_seconds'])} left")
    return ", ".join(parts)


def _reward(known: Progress) -> Iterator[str]:
    curve, report = known.grpo["reward/mean"], known.report()
    if not len(curve):
        yield "Reward: no figures yet"
        return
    recent = curve.last(ENDS)
    line = f"Reward: first {_show(report['reward_first'])}, now {_show(report['reward_last'])}"
    if recent:
        line += f", mean of the last {len(recent)} steps {_show(fmean(recent))}"
    if report["reward_best"] is not None:
        line += f", best {_show(report['reward_best'])}, {report['steps_since_best']} steps ago"
    yield line
    if len(curve) > 2:
        yield "Reward over the steps (means): " + ", ".join(f"{s}: {_show(v)}" for s, v in _thinned(curve))


def _thinned(curve: Curve) -> list[tuple[int, float]]:
    """At most POINTS means of neighbouring steps, each at its last step."""
    pairs = curve.points()
    size = -(-len(pairs) // POINTS)
    parts = [pairs[i : i + size] for i in range(0, len(pairs), size)] if pairs else []
    return [(int(part[-1][0]), fmean(value for _, value in part)) for part in parts]


def _figures(known: Progress) -> Iterator[str]:
    said = []
    for name in FIGURES:
        curve = known.grpo[name]
        first, last = curve.first(ENDS), curve.last(ENDS)
        if first and last:
            said.append(f"{name} {_show(fmean(first))} -> {_show(fmean(last))}")
    if said:
        yield f"Means of the first and the last {ENDS} steps: " + "; ".join(said)
    if not len(known.grpo) and (loss := known.sft["loss"].last(ENDS)):
        yield f"Warm start: step {known.sft.steps.steps[-1]}, loss {_show(fmean(loss))}"


def _alerts(alerts: list[dict[str, Any]]) -> Iterator[str]:
    """The newest of each rule."""
    by_rule = {str(alert.get("rule")): alert for alert in alerts}
    if not by_rule:
        return
    counts = _rules(alerts)
    yield f"New alerts ({counts.total()}):"
    for rule, alert in list(by_rule.items())[-ALERTS:]:
        times = f" x {counts[rule]}" if counts[rule] > 1 else ""
        severity = f" [{_quoted(alert['severity'], 6)}]" if alert.get("severity") else ""
        advice = f"; advice {_quoted(alert['action'], TEXT_TOKENS // 2)}" if alert.get("action") else ""
        yield f"- {_quoted(rule, 12)}{times}{severity}: {_quoted(alert.get('message'), TEXT_TOKENS)}{advice}"
    if len(by_rule) > ALERTS:
        yield f"- and {len(by_rule) - ALERTS} other rules"


def _rules(alerts: list[dict[str, Any]]) -> Counter[str]:
    """How often each rule raised one."""
    return Counter(str(alert.get("rule")) for alert in alerts)


def _decisions(events: list[dict[str, Any]]) -> Iterator[str]:
    for event in [event for event in events if event.get("kind") == "decision"][-2:]:
        what, reason = _quoted(event.get("what"), 8), _quoted(event.get("reason"), TEXT_TOKENS // 2)
        yield f"Earlier decision: {what}, {reason}"


def _quoted(text: Any, tokens: int) -> str:
    """Text that the run's author, a model or an environment chose: on one line, masked, in quotes."""
    words = one_line(str(text)[:LOOKED_AT], int(tokens * ASCII_PER_TOKEN))
    if text_tokens(words) > tokens:
        words = one_line(words, tokens)
    return json.dumps(words, ensure_ascii=False)


def _show(value: float | None) -> str:
    return "?" if value is None else f"{value:.4g}"
