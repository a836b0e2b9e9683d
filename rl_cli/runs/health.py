"""Is a run healthy? Pure functions over its figures: `inspect(view) -> findings`.

A finding either stops the run (`verdict` says as what) or is an alert, with the evidence and what to do.
Rules stop a run only for what cannot get better or what was asked for: figures that are not finite, no
progress, no signal, budget, deadline, target, plateau. The rules lie in `rules/`, by topic; each looks at a
bounded part of the run, so a check costs the same at step 100 and at step 100,000.
Not covered: whether the reward is the right one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rl_cli.runs.progress import Progress
from rl_cli.runs.rules import budgets, flat, leap, machine, policy, reward, rollouts, stops
from rl_cli.runs.rules.view import Finding, Limits, Room, Rule, View

__all__ = [
    "LEARNING",
    "RULES",
    "AlertGate",
    "Finding",
    "Limits",
    "Room",
    "View",
    "alert_fields",
    "inspect",
    "inspect_stops",
    "stop_signs",
    "view_of",
]

OF_FIGURES: tuple[Rule, ...] = (stops.not_finite, reward.no_signal, stops.target_reached, stops.plateau)
"""Those of the rules that end a run which look at nothing but its figures."""
ALWAYS: tuple[Rule, ...] = (
    *(*OF_FIGURES, stops.dead, stops.stalled),
    *(budgets.out_of_time, budgets.over_budget),
    *(machine.disk_low, machine.memory_low, machine.checkpoint_overdue),
    *(rollouts.rollout_errors, policy.logprob_mismatch, reward.reward_collapse),
)
LEARNING: tuple[Rule, ...] = (
    *(reward.reward_falling, reward.validation_falling, flat.no_gain, flat.reward_plateau),
    *(leap.reward_jump, policy.entropy_collapse, policy.entropy_explosion, policy.kl_high),
    *(policy.clip_saturated, policy.gradient_spike, rollouts.low_signal, rollouts.clipped),
    *(rollouts.length_blowup, rollouts.length_collapse, rollouts.repetition, rollouts.format_gaming),
    machine.slow,
)
"""Asked once the warm-up (health.alerts.warmup_steps) is over: the first steps are like no others."""
RULES: tuple[Rule, ...] = (*ALWAYS, *LEARNING)
SEVERITIES = ("info", "warning", "critical")


def inspect(view: View) -> list[Finding]:
    """All findings, those that stop the run first."""
    warm = len(view.grpo) > view.limits.alerts.warmup_steps
    found = [finding for rule in (RULES if warm else ALWAYS) for finding in rule(view)]
    return sorted(found, key=lambda finding: finding.verdict is None)


def inspect_stops(view: View) -> list[Finding]:
    """What the rules of OF_FIGURES find."""
    return [finding for rule in OF_FIGURES for finding in rule(view)]


def stop_signs(progress: Progress, limits: Limits) -> tuple[object, ...]:
    """While these are equal, `inspect_stops` finds the same: cheap enough to be asked at every row."""
    return stops.signs(limits, progress.grpo, progress.sft, progress.validations)


def view_of(progress: Progress, limits: Limits, **now: Any) -> View:
    """What the rules see of a run.

    Args:
        progress: What its rows and events add up to.
        limits: What its config allows.
        **now: The other fields of `View`: running_seconds, quiet_seconds, samples, disk, ...
    """
    total = progress.total_steps or limits.total_steps
    return View(
        limits=replace(limits, total_steps=total),
        grpo=progress.grpo,
        sft=progress.sft,
        validations=progress.validations,
        last_row=progress.last_row,
        checkpoint=progress.checkpoint,
        **now,
    )


def alert_fields(finding: Finding, progress: Progress) -> dict[str, Any]:
    """A finding as the fields of an `alert` event, with the step that the run has reached."""
    return {
        **progress.reached(),
        "rule": finding.rule,
        "severity": finding.severity,
        "message": finding.message,
        "action": finding.advice,
        "figures": finding.evidence,
    }


class AlertGate:
    """Lets through what is new: a rule that goes on finding the same is heard once.

    It is heard again after it was silent for more rows than the cool-down, or when it has become more severe.

    Args:
        cooldown: Rows, as health.alerts.cooldown_steps has them.
    """

    def __init__(self, cooldown: int) -> None:
        self.cooldown = cooldown
        self._seen: dict[str, tuple[int, int]] = {}
        """By rule: the row at which it last found something, and how severe."""

    def remember(self, alerts: Iterable[dict[str, Any]], row: int) -> None:
        """Takes alerts that were raised before this process looked (events of the run) as heard at `row`."""
        for alert in alerts:
            severity = alert.get("severity")
            rank = SEVERITIES.index(severity) if severity in SEVERITIES else 1
            self._seen[str(alert.get("rule"))] = (row, rank)

    def passed(self, findings: Iterable[Finding], row: int, since: int | None = None) -> list[Finding]:
        """Those of the findings of one check that are to be raised.

        Args:
            findings: Of `inspect`.
            row: How many rows the run had by then (`Progress.rows`).
            since: Row of the check before this one, where the rows in between were not judged: what was found
                then goes on.
        """
        new = []
        for finding in findings:
            rank = SEVERITIES.index(finding.severity)
            seen = self._seen.get(finding.rule)
            silent = seen is None or (row - seen[0] > self.cooldown and (since is None or seen[0] < since))
            if silent or (seen and rank > seen[1]):
                new.append(finding)
            self._seen[finding.rule] = (row, rank)
        return new
