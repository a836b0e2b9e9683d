"""What to do about a run at a check: a pure function of the figures that rl_check_status gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from environments.policies.operator.answers import idle_zh, show, steps_ago
from environments.policies.operator.steps import figure, text
from environments.policies.operator.wording import Voice

FALL_SHARE = 0.2
"""After an alert that the reward falls, a level this share below the best is a fall ..."""
CRASH_SHARE = 0.5
"""... and without one, this share; the best of many noisy steps lies well above their level ..."""
FALL_LEAST = 0.05
"""... if it is also this much below it ..."""
FALL_STEPS = 10
"""... and there was no new best for this many steps."""
COLLAPSE_SHARE = 0.1
"""With collapsed entropy, a level this share below the best is enough."""
IDLE_SHARE = 0.4
"""No new best for this share of the planned steps ..."""
IDLE_STEPS = 30
"""... and for at least this many of them no longer pays ..."""
REST_SHARE = 0.1
"""... unless less than this share of the steps is left."""
GAIN_LEAST = 0.02
"""A reward has risen if it is this much above its first value."""
STOPS = ("reward_collapse", "validation_falling", "logprob_mismatch")
"""Rules whose alert alone is enough; what any other rule advises is proposed."""


@dataclass(frozen=True)
class Judgement:
    stop: bool
    reason: str
    """One sentence with the figures, in the language of the request."""


def judge(say: Voice, status: Mapping[str, Any], new: list[dict[str, Any]]) -> Judgement:
    """Stops a run that gets worse or no longer pays; anything else goes on, with the reason.

    Args:
        say: The language.
        status: A result of rl_check_status; any of its figures may be missing.
        new: Those of its alerts that are new at this check.
    """
    for alert in new:
        if alert.get("rule") in STOPS:
            return Judgement(True, text(alert.get("message")))
    known = status.get("progress")
    progress: dict[str, Any] = known if isinstance(known, dict) else {}
    step, total = figure(progress.get("step")), figure(progress.get("total_steps"))
    first, last = figure(progress.get("reward_first")), figure(progress.get("reward_last"))
    best, idle = figure(progress.get("reward_best")), figure(progress.get("steps_since_best"))
    if first is None or last is None or best is None or idle is None:
        return Judgement(
            False, say("there are no reward figures to judge by yet", "还没有可供判断的奖励数据")
        )

    figures = say(
        f"reward {show(first)} at first, {show(last)} now, best {show(best)} {steps_ago(idle)}",
        f"奖励最初 {show(first)}，现在 {show(last)}，最好 {show(best)}（{idle_zh(idle)}）",
    )
    level = _level(status.get("recent"), last)
    drop = best - level
    rules = {text(alert.get("rule")) for alert in _rows(status.get("alerts"))}
    share = FALL_SHARE if "reward_falling" in rules else CRASH_SHARE
    if drop >= max(share * abs(best), FALL_LEAST) and idle >= FALL_STEPS:
        return Judgement(True, say(f"the reward has been falling: {figures}", f"奖励一直在下降：{figures}"))
    if "entropy_collapse" in rules and drop >= max(COLLAPSE_SHARE * abs(best), FALL_LEAST):
        return Judgement(
            True, say(f"entropy collapsed and the reward falls: {figures}", f"熵塌缩且奖励下降：{figures}")
        )
    if "no_gain" in rules and level - first < GAIN_LEAST:
        return Judgement(
            True, say(f"half of the steps brought no gain: {figures}", f"过半步数没有带来提升：{figures}")
        )
    rest = total - step if step is not None and total else 0
    if total and idle >= max(IDLE_STEPS, IDLE_SHARE * total) and rest > REST_SHARE * total:
        return Judgement(True, say(f"it no longer improves: {figures}", f"已不再提升：{figures}"))
    if level - first >= GAIN_LEAST:
        return Judgement(False, say(f"it is above where it began: {figures}", f"高于起点：{figures}"))
    return Judgement(False, say(f"too early to call it off: {figures}", f"还不到中止的时候：{figures}"))


def _rows(value: object) -> list[dict[str, Any]]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def _level(recent: object, last: float) -> float:
    """The mean reward of the recent steps, `last` where there are too few to average."""
    rewards = [v for row in _rows(recent) if (v := figure(row.get("reward/mean"))) is not None]
    return fmean(rewards) if len(rewards) >= 3 else last
