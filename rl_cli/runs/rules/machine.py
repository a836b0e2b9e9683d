"""The rules about what a run needs beside its figures: speed, checkpoints, disk, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from rl_cli.runs.rules.levels import WINDOW, level
from rl_cli.runs.rules.view import Finding, Room, View

BASELINE = 30
"""Steps that the speed of a step is compared with ..."""
GAP = 10
"""... which end so many steps ago."""
HOUR = 3600.0
TREND_SECONDS = 300.0
"""A trend of free space is believed once it has been looked at for this long ..."""
TREND_SHARE = 0.2
"""... and has taken this share of what was free."""
GB = 1e9
SMALL_SHARE = 0.05
"""On a small disk, or with little memory, this share of the whole is the bound, if that is less."""


def slow(view: View) -> Iterator[Finding]:
    """Steps take longer, and not because completions got longer."""
    seconds, tokens = view.grpo["seconds/step"], view.grpo["completion/mean_tokens"]
    now, before = level(seconds), level(seconds, BASELINE, GAP)
    if now is None or not before:
        return
    factor = now / before
    long_now, long_before = level(tokens), level(tokens, BASELINE, GAP)
    longer = max(1.0, long_now / long_before) if long_now and long_before else 1.0
    if factor > view.limits.alerts.slowdown_factor * longer:
        what = f"a step takes {now:.1f} s, {factor:.1f} times as long as before ({before:.1f} s)"
        advice = "look for another process on the machine, a full cache or a slow disk or network"
        evidence = {"seconds": now, "before": before, "step": view.grpo.steps.steps[-1]}
        yield Finding("slow", what, advice, evidence=evidence)


def checkpoint_overdue(view: View) -> Iterator[Finding]:
    every = view.limits.checkpoint_every
    if every is None or not len(view.grpo):
        return
    step = view.grpo.steps.steps[-1]
    since = step - max(view.checkpoint or 0, view.grpo.steps.steps[0] - 1)
    if since >= 2 * every + WINDOW:
        where = f"the last is of step {view.checkpoint}" if view.checkpoint is not None else "there is none"
        what = f"no checkpoint for {since} steps, though one is due every {every}: {where}"
        advice = "look into the trainer's log and at the disk; a crash now would lose these steps"
        evidence = {"step": step, "checkpoint": view.checkpoint, "every": every}
        yield Finding("checkpoint_overdue", what, advice, evidence=evidence)


def disk_low(view: View) -> Iterator[Finding]:
    advice = "free some space, or let fewer checkpoints be kept"
    yield from _running_out("disk_low", "disk space", view.disk, view.limits.alerts.free_gb, advice)


def memory_low(view: View) -> Iterator[Finding]:
    advice = "end what else runs here, or lower grpo.micro_batch_size; the system may kill the trainer"
    yield from _running_out("memory_low", "memory", view.memory, view.limits.alerts.free_gb, advice)


def _running_out(
    rule: str, what: str, seen: Sequence[Room], least_gb: float, advice: str
) -> Iterator[Finding]:
    if not seen:
        return
    now = seen[-1]
    least = min(least_gb * GB, SMALL_SHARE * now.total)
    evidence = {"free_gb": round(now.free / GB, 3), "limit_gb": round(least / GB, 3)}
    if now.free < least:
        message = f"only {now.free / GB:.2f} GB of {what} are left"
        yield Finding(rule, message, advice, evidence=evidence, severity="critical")
    elif (left := _seconds_left(seen)) is not None and left < HOUR:
        message = f"{what} lasts for another {left / 60:.0f} minutes: {now.free / GB:.1f} GB are left"
        yield Finding(rule, message, advice, evidence={**evidence, "minutes": round(left / 60)})


def _seconds_left(seen: Sequence[Room]) -> float | None:
    """Until nothing is free, if it goes on as it went in each third of what was seen; None if it does not."""
    marks = [seen[i * (len(seen) - 1) // 3] for i in range(4)]
    spans = [b.time - a.time for a, b in pairwise(marks)]
    if sum(spans) < TREND_SECONDS or min(spans) <= 0:
        return None
    pace = min((a.free - b.free) / span for (a, b), span in zip(pairwise(marks), spans, strict=True))
    used = 1 - seen[-1].free / max(seen[0].free, 1.0)
    return seen[-1].free / pace if pace > 0 and used > TREND_SHARE else None
