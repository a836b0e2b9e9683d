"""The rules about rollouts: their errors, their signal, their length, what they repeat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from statistics import fmean, median
from typing import Any

from rl_cli.runs.curves import Curve
from rl_cli.runs.rules.levels import FULL, WINDOW, level, nearly_full, rise, scatter
from rl_cli.runs.rules.view import Finding, Row, View

ERRORS = "rollouts/errors/"
PARTS = "reward/parts/"
"""Means of the parts that a reward is made of."""
BASELINE, GAP = 30, 15
"""A length is compared with that of BASELINE steps that end GAP steps ago."""
FAST = 1.5
"""That many times the bound is too much whatever the reward does."""
RIGHT = ("correct", "accura", "answer", "solved", "exact", "pass", "success")
"""Words in the name of a part that say that it is about being right."""
PART_FALL = 0.15
"""Fall of such a part (0 to 1) that counts ..."""
PART_SHARE = 0.25
"""... or this share of what it was."""
FEW_SAMPLES = 8
REPETITIVE_SHARE = 0.3
"""Of the recent samples."""
LOOP_WORDS, LOOP_SHARE = 30, 0.5
"""A completion of at least so many words loops if this share of its four-word sequences came before in it."""


def rollout_errors(view: View) -> Iterator[Finding]:
    curve = view.grpo["rollouts/errors"]
    errors = level(curve, 3)
    if errors is None or errors <= 0.1 * view.limits.batch_size:
        return
    kinds = {
        name.removeprefix(ERRORS): fmean(view.grpo[name].last(3) or [0.0])
        for name in view.last_row
        if name.startswith(ERRORS)
    }
    most = max(kinds, key=lambda kind: kinds[kind], default="unknown")
    what = f"{errors:.0f} of {view.limits.batch_size} rollouts a step fail (mostly: {most})"
    advice = f"mend the cause ({most}); such rollouts carry no weight in training"
    evidence = {"errors": errors, "kinds": kinds, "step": curve.steps[-1]}
    yield Finding("rollout_errors", what, advice, evidence=evidence)


def low_signal(view: View) -> Iterator[Finding]:
    """Few groups carry signal, though the tasks are not solved: near the end of a good run few can."""
    curve, rewards = view.grpo["groups/with_signal"], view.grpo["reward/mean"]
    share, reward = level(curve), level(rewards)
    solved = reward is not None and nearly_full(reward, rewards)
    solved = solved or any(accuracy >= FULL for accuracy in view.validations.last(1))
    if share is not None and 0 < share < 0.1 and not solved:
        what = f"only {share:.0%} of the groups carry signal"
        advice = "larger groups, or tasks that are solved sometimes but not always"
        evidence = {"share": share, "step": curve.steps[-1]}
        yield Finding("low_signal", what, advice, evidence=evidence)


def clipped(view: View) -> Iterator[Finding]:
    curve = view.grpo["completion/clipped"]
    share, before = level(curve), level(curve, BASELINE, GAP)
    bound = view.limits.alerts.cut_off_share
    if share is None or share <= bound or (before is not None and before > share):
        return
    what = f"{share:.0%} of the completions were cut off at the token limit"
    evidence = {"share": share, "before": before, "step": curve.steps[-1]}
    yield Finding("clipped", what, "raise grpo.max_new_tokens", evidence=evidence)


def length_blowup(view: View) -> Iterator[Finding]:
    found = _length_change(view)
    if found and found[0] > 1:
        factor, before, now = found
        what = f"completions grew {factor:.1f} times as long, from {before:.0f} to {now:.0f} tokens"
        advice = "read samples: padding or endless reasoning? A length penalty or a lower limit helps"
        evidence = {"before": before, "last": now, "step": view.grpo.steps.steps[-1]}
        yield Finding("length_blowup", what, advice, evidence=evidence)


def length_collapse(view: View) -> Iterator[Finding]:
    found = _length_change(view)
    if found and found[0] < 1:
        factor, before, now = found
        what = f"completions shrank to {factor:.0%} of their length, from {before:.0f} to {now:.0f} tokens"
        advice = "read samples: is the work left out? See whether the reward pays for short answers"
        evidence = {"before": before, "last": now, "step": view.grpo.steps.steps[-1]}
        yield Finding("length_collapse", what, advice, evidence=evidence)


def _length_change(view: View) -> tuple[float, float, float] | None:
    """(factor, before, now), if lengths changed by too much."""
    curve = view.grpo["completion/mean_tokens"]
    bound, now = view.limits.alerts.length_factor, level(curve)
    before = curve.last(BASELINE, GAP)
    if now is None or len(before) < WINDOW:
        return None
    usual = median(before)
    factor = now / max(usual, 1e-9)
    size = max(factor, 1 / max(factor, 1e-9))
    gain, error = rise(view.grpo["reward/mean"].last(BASELINE + GAP))
    if size > FAST * bound or (size > bound and gain < 2 * error):
        return factor, usual, now
    return None


def repetition(view: View) -> Iterator[Finding]:
    """Completions that go round in circles, or that are the same whatever was asked."""
    samples = [row for row in view.samples if isinstance(row.get("completion"), str)]
    recent = samples[-4 * FEW_SAMPLES :]
    if len(recent) < FEW_SAMPLES:
        return
    loops = [row for row in recent if _loops(row["completion"])]
    if len(loops) >= REPETITIVE_SHARE * len(recent):
        what = f"{len(loops)} of the last {len(recent)} samples repeat themselves"
        yield _repeats(what, loops[-1], view)
        return
    (text, times), asked = _commonest(recent)
    if times > len(recent) / 2 and asked >= FEW_SAMPLES / 2:
        what = f"{times} of the last {len(recent)} samples are the same text, for {asked} different prompts"
        yield _repeats(what, {"completion": text}, view)


def _repeats(what: str, row: Row, view: View) -> Finding:
    advice = "look at samples; raise grpo.temperature, or punish repetition in the reward"
    step = view.grpo.steps.steps[-1] if len(view.grpo) else None
    evidence: dict[str, Any] = {"completion": row["completion"][:300], "step": row.get("step", step)}
    return Finding("repetition", what, advice, evidence=evidence)


@lru_cache(maxsize=256)
def _loops(text: str) -> bool:
    words = text.split()
    if len(words) < LOOP_WORDS:
        return False
    grams = list(zip(words, words[1:], words[2:], words[3:], strict=False))
    return 1 - len(set(grams)) / len(grams) >= LOOP_SHARE


def _commonest(rows: list[Row]) -> tuple[tuple[str, int], int]:
    """The commonest completion, how often it occurs, and for how many different prompts."""
    text, times = Counter(row["completion"] for row in rows).most_common(1)[0]
    return (text, times), len({row.get("prompt") for row in rows if row["completion"] == text})


def format_gaming(view: View) -> Iterator[Finding]:
    """What the reward is paid for moves away from being right: that part falls, and the reward does not."""
    rewards = view.grpo["reward/mean"]
    for name, curve in view.grpo.by_name.items():
        part = name.removeprefix(PARTS)
        if part == name or not _is_right(part):
            continue
        fell, other = _fall(curve), _best_paid(view)
        paid, unpaid = rewards.last(2 * WINDOW), rewards.last(BASELINE, GAP)
        held = bool(paid and unpaid) and median(paid) > median(unpaid) - scatter(paid) / 2
        if fell and other and held:
            before, now = fell
            what = f"'{part}' fell from {before:.2f} to {now:.2f}, the reward did not: '{other}' pays"
            advice = "stop and mend the reward: format should not pay without a right answer"
            evidence = {"part": part, "before": before, "last": now, "step": curve.steps[-1]}
            yield Finding("format_gaming", what, advice, evidence=evidence)
            return


def _is_right(part: str) -> bool:
    return any(word in part.lower() for word in RIGHT)


def _fall(curve: Curve) -> tuple[float, float] | None:
    """(before, now) of a part that fell by enough, and by more than it scatters."""
    before, now = curve.last(BASELINE, GAP), curve.last(2 * WINDOW)
    if len(before) < WINDOW or len(now) < 2 * WINDOW:
        return None
    drop = median(before) - median(now)
    least = min(PART_FALL, PART_SHARE * median(before))
    return (median(before), median(now)) if drop > max(least, 2.5 * scatter(now)) else None


def _best_paid(view: View) -> str | None:
    """The part that is not about being right and pays most."""
    parts = {
        name.removeprefix(PARTS): fmean(curve.last(2 * WINDOW) or [0.0])
        for name, curve in view.grpo.by_name.items()
        if name.startswith(PARTS) and not _is_right(name.removeprefix(PARTS))
    }
    return max(parts, key=lambda part: parts[part], default=None)
