"""How a run goes, in the few lines that `runs watch` repaints."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from rl_cli.cli.live_block import Line, Piece
from rl_cli.core.cuts import one_line
from rl_cli.runs.alert_words import at_step
from rl_cli.runs.progress import Progress, Row, number
from rl_cli.runs.reports.sparkline import sparkline
from rl_cli.runs.state_file import State
from rl_cli.runs.times import duration, seconds_of

LABEL = 12
"""Columns of the names on the left."""
LAST_ALERTS = 3
STATE_STYLES = {
    **dict.fromkeys(("running", "finished"), "good"),
    **dict.fromkeys(("failed", "lost"), "bad"),
    **dict.fromkeys(("stopping", "stopped"), "warn"),
}
SEVERITY_STYLES = {"critical": "bad", "warning": "warn"}
FIGURES = (
    ("loss", "loss"),
    ("entropy", "entropy"),
    ("grad_norm", "grad norm"),
    ("groups/with_signal", "signal"),
    ("kl", "kl"),
    ("completion/mean_tokens", "tokens"),
    ("seconds/step", "s/step"),
)


@dataclass
class Watched:
    """What is known of a run at one moment."""

    id: str
    state: State
    progress: Progress
    next_check: float | None = None
    """Unix time of the next judgement."""
    remarks: list[str] = field(default_factory=list)
    """Where W&B says otherwise."""
    stall_seconds: float | None = None
    """Of silence after which it is called stalled."""


def block(watched: Watched, columns: int, rows: int, now: float) -> list[Line]:
    """The lines, what matters first; the newest alerts are left out where `rows` do not hold them.

    Args:
        watched: The run.
        columns: Width of the terminal.
        rows: At most so many lines.
        now: Unix time.
    """
    lines = [_head(watched, now), *_progress(watched, columns, now), *_figures(watched.progress, columns)]
    if quiet := _quiet(watched, now):
        lines.append(_labelled("silent", quiet, "warn"))
    lines += [_labelled("W&B", remark, "warn") for remark in watched.remarks]
    alerts = watched.progress.current_alerts
    room = max(1, min(LAST_ALERTS, rows - len(lines) - 2))
    shown = alerts[-room:]
    if shown:
        count = f"{len(alerts)}" if len(alerts) > len(shown) else ""
        lines += [_alert(alert, count if i == 0 else "", i == 0, now) for i, alert in enumerate(shown)]
    if watched.next_check is not None:
        lines.append(_labelled("next check", _moment(watched.next_check, now), "dim"))
    lines.append([Piece("Ctrl-C leaves the run alone", "dim")])
    return lines


def _quiet(watched: Watched, now: float) -> str | None:
    if watched.stall_seconds is None or watched.state["state"] != "running":
        return None
    return watched.progress.quiet(now, watched.stall_seconds)


def _labelled(label: str, text: str, style: str = "") -> Line:
    return [Piece(f"{label:<{LABEL}}", "dim"), Piece(one_line(text, 500), style)]


def _head(watched: Watched, now: float) -> Line:
    state = watched.state
    started = seconds_of(state.get("started") or state.get("created"))
    parts = [] if started is None else [f"since {duration(now - started)}"]
    if watched.progress.attempt > 1:
        parts.insert(0, f"attempt {watched.progress.attempt}")
    if watched.state["state"] == "running" and watched.progress.phase:
        parts.insert(0, watched.progress.phase)
    reason = f": {one_line(str(state['reason']), 300)}" if state.get("reason") else ""
    style = STATE_STYLES.get(state["state"], "")
    told = "  ".join(["", *parts]) + reason
    return [Piece(one_line(watched.id, 100), "bold"), Piece("  "), Piece(state["state"], style), Piece(told)]


def _progress(watched: Watched, columns: int, now: float) -> list[Line]:
    """The bar with steps and the time left; before the first GRPO step, those of the warm start."""
    progress = watched.progress
    total, step = progress.total_steps, progress.step
    eta = None if _quiet(watched, now) else progress.eta_seconds()
    if not step and len(progress.sft):
        return [_labelled("sft", f"step {progress.sft.steps.steps[-1]}")]
    if not total:
        return [_labelled("step", f"{step:,}")] if step else []
    known = [
        f"{step:,}/{total:,} steps",
        *([f"{duration(eta)} left", f"until {_clock(now + eta)}"] if eta else []),
    ]
    told = "  " + _as_many_as_fit(known, columns - LABEL - 10)
    width = max(8, min(40, columns - LABEL - len(told)))
    full = min(width, round(width * step / total))
    share = f"{min(1.0, step / total):>4.0%}"
    return [
        [
            Piece(f"{share:<{LABEL}}"),
            Piece("█" * full, "good"),
            Piece("░" * (width - full), "dim"),
            Piece(told),
        ]
    ]


def _figures(progress: Progress, columns: int) -> list[Line]:
    lines: list[Line] = []
    rewards, losses = progress.grpo["reward/mean"], progress.sft["loss"]
    if len(rewards):
        best = rewards.best()
        told = f"{_figure(rewards.values[-1]):<8}"
        behind = f"  best {_figure(best[1])} at step {best[0]:,}" if best else ""
        room = min(40, columns - LABEL - len(told) - len(behind))
        lines.append(
            [
                Piece(f"{'reward':<{LABEL}}", "dim"),
                Piece(told, "bold"),
                Piece(sparkline(rewards, max(8, room))),
                Piece(behind, "dim"),
            ]
        )
    elif len(losses):
        told = f"{_figure(losses.values[-1]):<8}"
        room = max(8, min(40, columns - LABEL - len(told)))
        lines.append([Piece(f"{'sft loss':<{LABEL}}", "dim"), Piece(told), Piece(sparkline(losses, room))])
    accuracies = _accuracies(progress)
    if accuracies:
        lines.append(_labelled("accuracy", _as_many_as_fit(accuracies, columns - LABEL)))
    row = progress.last_row if progress.step else {}
    figures = [(label, value) for name, label in FIGURES if (value := number(row, name)) is not None]
    if figures:
        bad = any(not math.isfinite(value) for _, value in figures)
        told = _as_many_as_fit([f"{label} {_figure(value)}" for label, value in figures], columns - LABEL)
        lines.append(_labelled(f"step {progress.step:,}", told, "bad" if bad else ""))
    return lines


def _as_many_as_fit(parts: list[str], columns: int) -> str:
    while len(parts) > 1 and len(", ".join(parts)) > columns:
        parts = parts[:-1]
    return ", ".join(parts)


def _accuracies(progress: Progress) -> list[str]:
    found = []
    measured = progress.validations
    if len(measured):
        found.append(f"validation {measured.values[-1]:.3f} at step {measured.steps[-1]:,}")
    for which in ("initial", "best", "final"):
        if progress.eval.get(which) is not None:
            found.append(f"{which} {progress.eval[which]:.3f}")
    return found


def _alert(alert: Row, count: str, first: bool, now: float) -> Line:
    label = (f"alerts ({count})" if count else "alerts") if first else ""
    when = seconds_of(str(alert.get("time")))
    age = "" if when is None else f"{_about(now - when)} ago"
    style = SEVERITY_STYLES.get(str(alert.get("severity")), "")
    told = one_line(f"{alert.get('rule')}{at_step(alert)}: {alert.get('message')}", 300)
    return [Piece(f"{label:<{LABEL}}", "dim"), Piece(f"{age:<12}", "dim"), Piece(told, style)]


def _about(seconds: float) -> str:
    """In one unit: an age that changes every second draws the eye to it."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


def _moment(when: float, now: float) -> str:
    if when <= now:
        return "now: a chat or rl-cli monitor makes it"
    return f"in {duration(when - now)}, at {_clock(when)}"


def _clock(when: float) -> str:
    """Local time, with the day where that is another."""
    moment, today = time.localtime(when), time.localtime()
    return time.strftime("%H:%M" if moment[:3] == today[:3] else "%a %H:%M", moment)


def _figure(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "NaN" if math.isnan(value) else str(value)
