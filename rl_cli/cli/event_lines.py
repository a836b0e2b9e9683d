"""Calls, results, progress of a run: each as one line for a person."""

from __future__ import annotations

import json
from typing import Any

from rl_cli.cli.wrapping import display_width
from rl_cli.core.cuts import one_line
from rl_cli.core.messages import ToolCall
from rl_cli.core.redaction import redact, redact_text
from rl_cli.runs.alert_words import at_step

FIGURES = (
    ("reward/mean", "reward"),
    ("groups/with_signal", "signal"),
    ("accuracy/validation", "validation"),
    ("loss", "loss"),
)
HIDDEN = ("ok", "description", "reward", "note", "problem", "why_not")
LIMITS = ("more", "truncated")
"""Keys of a result that say something only where they are true."""
OPENED = ("eval", "changed", "sizes")
"""Keys of a result whose object is worth showing."""


def clip(text: str, columns: int) -> str:
    """`text` on one line of at most `columns` columns of a terminal."""
    text = redact_text(text).replace("\n", " ").replace("\t", " ")
    if display_width(text) <= columns:
        return text
    while text and display_width(text) > columns - 1:
        text = text[:-1]
    return text + "…"


def seconds_text(seconds: float) -> str:
    """`0.1 s`, `3 min 05 s`, `2 h 10 min`."""
    from rl_cli.runs.times import duration

    return f"{seconds:.1f} s" if seconds < 59.95 else duration(seconds)


def turns_text(count: int) -> str:
    return f"{count} turn{'' if count == 1 else 's'}"


def counted(count: int, plural: str) -> str:
    """`1 run`, `2 runs`, `1 entry`."""
    if count != 1 or not plural.endswith("s"):
        return f"{count} {plural}"
    if plural.endswith("sses"):
        return f"{count} {plural[:-2]}"
    return f"{count} {plural[:-3] + 'y' if plural.endswith('ies') else plural[:-1]}"


def call_line(call: ToolCall) -> str:
    """A call that begins."""
    function = call["function"]
    return f"→ {one_line(function['name'], 100)}({one_line(_unescaped(function['arguments'] or ''), 160)})"


def _unescaped(arguments: str) -> str:
    """JSON with its letters as they are, not as \\u escapes; what is no JSON stays."""
    if "\\u" not in arguments:
        return arguments
    try:
        return json.dumps(json.loads(arguments), ensure_ascii=False)
    except (ValueError, RecursionError):
        return arguments


def result_line(name: str, ok: bool, result: str, seconds: float) -> str:
    """A call that ended: its result folded, and how long it took."""
    well = ok and json.loads(result).get("exit_code", 0) == 0
    return f"{'✓' if well else '✗'} {name} {fold(result)} ({seconds_text(seconds)})"


def fold(result: str) -> str:
    """A tool result in at most one short line: what failed, or the few figures that matter."""
    data = redact(json.loads(result))
    if not data.get("ok"):
        error = data.get("error", {})
        return one_line(f"{error.get('type')}: {error.get('message')}", 200)
    if isinstance(data.get("run"), dict) and isinstance(data.get("progress"), dict) and "why" in data:
        return one_line(_status_words(data), 240)
    if "exit_code" in data:
        return one_line(_command_words(data), 240)
    shown = []
    for key, value in data.items():
        if key in HIDDEN or value in (None, [], {}) or (value is False and key in LIMITS):
            continue
        if isinstance(value, list):
            shown.append(counted(len(value), key))
        elif isinstance(value, dict):
            if key in OPENED:
                shown.append(f"{key} {one_line(json.dumps(value, ensure_ascii=False), 120)}")
        elif isinstance(value, float):
            shown.append(f"{key} {value:.4g}")
        else:
            shown.append(f"{key} {one_line(str(value), 70)}")
    shown = shown or [f"0 {key}" for key, value in data.items() if value == []]
    return one_line(", ".join(shown), 240)


def _command_words(data: dict[str, Any]) -> str:
    """How a command ended, and the last line of what it said."""
    ended = "ended at its time-out" if data.get("timed_out") else f"exit {data['exit_code']}"
    streams = ("stdout", "stderr") if data["exit_code"] == 0 else ("stderr", "stdout")
    said = next((text for name in streams if (text := str(data.get(name) or "").strip())), "")
    return f"{ended}: {said.splitlines()[-1]}" if said else ended


WHY = {
    "now": "",
    "due": "check is due: ",
    "alert": "alert: ",
    "end": "ended: ",
    "interrupted": "interrupted: ",
}


def _status_words(data: dict[str, Any]) -> str:
    """A status of `rl_check_status`: how the run goes, and when it is looked at next."""
    run, progress = data["run"], data["progress"]
    parts = [str(run.get("state"))]
    if progress.get("step"):
        total = f"/{progress['total_steps']}" if progress.get("total_steps") else ""
        parts.append(f"step {progress['step']}{total}")
    elif progress.get("phase"):
        parts.append(str(progress["phase"]))
    if isinstance(progress.get("reward_last"), int | float):
        parts.append(f"reward {progress['reward_last']:.3f}")
    if data.get("alerts"):
        rules = ", ".join(str(alert.get("rule")) for alert in data["alerts"][-2:])
        parts.append(f"{counted(len(data['alerts']), 'alerts')} ({rules})")
    if data.get("decision"):
        parts.append(f"decision: {data['decision']}")
    if isinstance(data.get("next_check_seconds"), int | float):
        parts.append(f"next check in {seconds_text(data['next_check_seconds'])}")
    return WHY.get(str(data["why"]), "") + ", ".join(parts)


def progress_line(event: dict[str, Any]) -> str | None:
    """One line for a progress event of a run or of an inference test, or None if it is not worth one."""
    kind = event.get("kind")
    if kind == "metrics":
        return _metrics_line(event)
    if kind == "phase":
        return f"phase: {event.get('name')}"
    if kind == "evaluation":
        of = f"{event.get('n')} {event.get('split')} problems"
        return f"evaluation {event.get('which')}: accuracy {event.get('accuracy'):.3f} on {of}"
    if kind == "warm_start":
        steps = f"{event['steps']} steps" if event.get("steps") is not None else ""
        accuracy = event.get("accuracy")
        measured = f"accuracy {accuracy:.3f}" if isinstance(accuracy, int | float) else ""
        passed = event.get("gate")
        gate = f"gate {passed:.3f}" if isinstance(passed, int | float) else f"gate {passed}" if passed else ""
        known = ", ".join(str(part) for part in (event.get("source"), steps, gate, measured) if part)
        note = str(event.get("note") or "")
        between = ". " if note[:1].isupper() else ", "
        return f"warm start: {between.join(part for part in (known, note) if part) or 'played'}"
    if kind == "alert":
        return one_line(f"alert ({event.get('rule')}){at_step(event)}: {event.get('message')}", 600)
    if kind == "decision" and "why" in event:  # of a check that the conversation does not see
        what = one_line(str(event.get("what")), 40)
        return f"decision ({one_line(str(event.get('by')), 60)}): {what}, {event.get('reason')}"
    if kind == "resumed" and "attempt" in event:
        where = f"from step {event['step']}" if event.get("step") else "from the beginning"
        return f"resumed {where} (attempt {event['attempt']})"
    if kind in ("wandb", "resumed") and event.get("message"):
        return f"W&B: {one_line(str(event['message']), 300)}"
    if kind == "checks_missed":
        return f"checks: {event.get('missed')} passed unwatched"
    if kind == "state":
        reason = f" ({event['reason']})" if event.get("reason") else ""
        return f"state: {event.get('state')}{reason}"
    return None


def _metrics_line(event: dict[str, Any]) -> str | None:
    row = event.get("row", event)
    if row.get("cached"):
        return None
    total = f"/{event['total_steps']}" if event.get("total_steps") else ""
    parts = [f"{row.get('phase', '')} step {row.get('step')}{total}"]
    parts += [f"{label} {row[key]:.3f}" for key, label in FIGURES if isinstance(row.get(key), int | float)]
    if isinstance(row.get("seconds/step"), int | float):
        parts.append(f"{row['seconds/step']:.2f} s/step")
    return "  ".join(parts)
