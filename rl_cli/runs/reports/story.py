"""What happened to a run, for its report: attempts, alerts, decisions, as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.json_text import to_json
from rl_cli.runs.attempt_changes import changes_by_attempt
from rl_cli.runs.reports.page import Block, Cell, Table, Text
from rl_cli.runs.state_file import OVER
from rl_cli.runs.times import duration, since

MOST_ROWS = 100
"""Of a table: the newest."""
SEVERITY_TONES = {"critical": "bad", "warning": "warn"}
STATE_TONES = {"finished": "good", "failed": "bad", "lost": "bad", "stopped": "warn"}
Events = Sequence[dict[str, Any]]


def attempts(events: Events, state: Mapping[str, Any], first: Mapping[str, Any]) -> list[Block]:
    """One row per attempt, where the run was resumed; `first` is the config of the first one, flat."""
    if not any(event.get("kind") == "resumed" for event in events):
        return []
    rows: list[list[Cell | str]] = []
    start, begun_from, changes, end = state.get("created"), "the beginning", "", ("", "")
    changed = iter(changes_by_attempt(first, events))
    for event in [*events, {"kind": "resumed"}]:
        if event.get("kind") == "state" and event.get("state") in (*OVER, "lost"):
            end = (str(event["state"]), str(event.get("reason") or ""))
        elif event.get("kind") == "resumed":
            number = str(len(rows) + 1)
            ended = Cell(end[0], tone=STATE_TONES.get(end[0], "")) if end[0] else "goes on"
            rows.append([number, _moment(start, state), begun_from, changes, ended, short_figures(end[1])])
            step = event.get("step")
            start, end = event.get("time"), ("", "")
            begun_from = f"step {step}" if step else "the beginning"
            changes = ", ".join(f"{one.field} {one.values()}" for one in next(changed, []))
    heads = ("attempt", "after", "from", "changed", "ended", "why")
    return [Table(heads, rows[-MOST_ROWS:], kind="stacked"), *_left_out(len(rows))]


def alerts(found: Events, state: Mapping[str, Any]) -> list[Block]:
    """Every alert with its severity and evidence."""
    rows: list[list[Cell | str]] = []
    for alert in found[-MOST_ROWS:]:
        severity = str(alert.get("severity") or "alert")
        aside = _evidence(alert, alert.get("figures"))
        rows.append(
            [
                _moment(alert.get("time"), state),
                Cell(severity, tone=SEVERITY_TONES.get(severity, "")),
                str(alert.get("rule")),
                Cell(str(alert.get("message")), f"({aside})" if aside else ""),
                str(alert.get("action")),
            ]
        )
    heads = ("after", "severity", "rule", "what was seen", "what to do")
    return [Table(heads, rows, kind="stacked"), *_left_out(len(found))] if rows else []


def decisions(events: Events, state: Mapping[str, Any]) -> list[Block]:
    """Who decided what, when and why; states too."""
    rows: list[list[Cell | str]] = []
    for event in events:
        kind = event.get("kind")
        if kind == "state" and event.get("state") == "created" and rows:
            continue  # of the next attempt, which is told as resumed
        if kind == "state":
            who, what = "supervisor", str(event.get("state"))
        elif kind == "decision":
            who, what = str(event.get("by")), str(event.get("what"))
        elif kind == "stop_requested":
            who, what = str(event.get("by")), "asks to stop"
        elif kind == "resumed":
            step = event.get("step")
            who, what = "rl-cli", f"resumed {f'after step {step}' if step else 'from the beginning'}"
        elif kind == "attached":
            who, what = "supervisor", "took over a trainer that ran on alone"
        else:
            continue
        told = []
        if kind == "decision":
            at_check = f"at a check: {event['why']}" if event.get("why") else ""
            told = [part for part in (at_check, _evidence(event, event.get("evidence"))) if part]
        reason = short_figures(str(event.get("reason") or ""))
        aside = f"({'; '.join(told)})" if told else ""
        rows.append(
            [
                _moment(event.get("time"), state),
                short_figures(who),
                Cell(short_figures(what), tone=STATE_TONES.get(what, "")),
                Cell(reason, aside),
            ]
        )
    heads = ("after", "who", "what", "why")
    return [Table(heads, rows[-MOST_ROWS:], kind="stacked"), *_left_out(len(rows))] if rows else []


def _evidence(event: Mapping[str, Any], figures: Any) -> str:
    """The figures with their step, or else the step that the run had reached."""
    known = {"step": event.get("step"), "phase": event.get("phase")}
    reached = {key: value for key, value in known.items() if value != "grpo"}
    return pairs({**figures, **reached, **figures} if isinstance(figures, dict) else reached)


def pairs(values: Mapping[str, Any]) -> str:
    """Names with their values on one line, where there are any; samples are shown elsewhere."""
    told = []
    for name, value in values.items():
        if isinstance(value, float):
            told.append(f"{name} {value:.4g}")
        elif value is None:
            continue
        elif isinstance(value, str | int):
            told.append(f"{name} {one_line(str(value), 80)}")
        elif name != "samples":
            told.append(f"{name} {one_line(to_json(value), 80)}")
    return one_line(", ".join(told), 400)


def short_figures(said: str) -> str:
    """The text with at most four digits after a point."""
    return re.sub(r"(?<![\w.])\d+\.\d{5,}(?![\w.])", lambda match: f"{float(match[0]):.4f}", said)


def _left_out(count: int) -> list[Block]:
    if count <= MOST_ROWS:
        return []
    return [Text(f"The newest {MOST_ROWS} of {count}; all are in events.jsonl.", "about")]


def _moment(time: Any, state: Mapping[str, Any]) -> Cell:
    passed = since(state.get("created") or state.get("started"), str(time))
    return Cell(duration(max(0.0, passed)) if passed is not None else "?", hover=str(time))
