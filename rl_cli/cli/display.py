"""Shows a conversation as it happens: text, tool calls with durations, and a live line of training."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, TextIO

from environments.agent_loop import AssistantMessage, LoopEvent, ToolFinished, ToolStarted
from rl_cli.core.json_text import to_json
from rl_cli.core.printable import printable

LINE_EVERY_SECONDS = 5.0
"""Where lines cannot be rewritten (a pipe), metrics are printed at most this often."""


def shorten(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def progress_line(event: dict[str, Any]) -> str | None:
    """One line for a progress event of a run or of an inference test, or None if it is not worth one."""
    kind = event.get("kind")
    if kind == "metrics":
        row = event.get("row", event)
        if row.get("cached"):
            return None
        total = f"/{event['total_steps']}" if row.get("phase") == "grpo" and event.get("total_steps") else ""
        parts = [f"{row.get('phase', '')} step {row.get('step')}{total}"]
        for key, label in (
            ("reward/mean", "reward"),
            ("groups/with_signal", "signal"),
            ("accuracy/validation", "validation"),
            ("loss", "loss"),
        ):
            if isinstance(row.get(key), int | float):
                parts.append(f"{label} {row[key]:.3f}")
        if isinstance(row.get("seconds/step"), int | float):
            parts.append(f"{row['seconds/step']:.2f} s/step")
        return "  ".join(parts)
    if kind == "phase":
        return f"phase: {event.get('name')}"
    if kind == "evaluation":
        of = f"{event.get('n')} {event.get('split')} problems"
        return f"evaluation {event.get('which')}: accuracy {event.get('accuracy'):.3f} on {of}"
    if kind == "warm_start":
        return f"warm start: {event.get('source')}, {event.get('steps')} steps, gate {event.get('gate')}"
    if kind == "alert":
        return f"alert ({event.get('rule')}): {event.get('message')}"
    if kind == "state":
        reason = f" ({event['reason']})" if event.get("reason") else ""
        return f"state: {event.get('state')}{reason}"
    return None


class TextDisplay:
    """Plain text to a stream; on a terminal the metrics line is rewritten in place."""

    def __init__(self, out: TextIO) -> None:
        self.out = out
        self.live = out.isatty()
        self._on_live_line = False
        self._last_metrics = 0.0

    def notice(self, text: str) -> None:
        self._line(text)

    def on_event(self, event: LoopEvent) -> None:
        if isinstance(event, AssistantMessage):
            content = event.message.get("content")
            if content:
                self._line("\n" + content)
        elif isinstance(event, ToolStarted):
            function = event.call["function"]
            self._line(f"  → {function['name']}({shorten(function['arguments'] or '', 160)})")
        elif isinstance(event, ToolFinished):
            record = event.record
            mark = "✓" if record.ok else "✗"
            self._line(f"  {mark} {record.name} {fold(record.result)} ({record.seconds:.1f} s)")

    def on_progress(self, event: dict[str, Any]) -> None:
        line = progress_line(event)
        if line is None:
            return
        if event.get("kind") != "metrics":
            self._line(f"    {line}")
        elif self.live:
            self.out.write("\r\x1b[2K    " + shorten(printable(line), 100))
            self.out.flush()
            self._on_live_line = True
        elif time.monotonic() - self._last_metrics >= LINE_EVERY_SECONDS:
            self._last_metrics = time.monotonic()
            self._line(f"    {line}")

    def _line(self, text: str) -> None:
        if self._on_live_line:
            self.out.write("\n")
            self._on_live_line = False
        self.out.write(printable(text) + "\n")
        self.out.flush()


class JsonDisplay:
    """One JSON object per line."""

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def notice(self, text: str) -> None:
        self._write({"kind": "notice", "text": text})

    def on_event(self, event: LoopEvent) -> None:
        if isinstance(event, AssistantMessage):
            self._write({"kind": "message", "message": event.message})
        elif isinstance(event, ToolStarted):
            self._write({"kind": "call", "call": event.call})
        elif isinstance(event, ToolFinished):
            record = event.record
            self._write(
                {
                    "kind": "result",
                    "id": record.id,
                    "name": record.name,
                    "ok": record.ok,
                    "seconds": round(record.seconds, 3),
                    "result": json.loads(record.result),
                }
            )

    def on_progress(self, event: dict[str, Any]) -> None:
        self._write({**event, "kind": "progress", "progress": event.get("kind")})

    def _write(self, row: dict[str, Any]) -> None:
        self.out.write(to_json(row) + "\n")
        self.out.flush()


def fold(result: str) -> str:
    """A tool result in at most one short line: what failed, or the few figures that matter."""
    data = json.loads(result)
    if not data.get("ok"):
        error = data.get("error", {})
        return shorten(f"{error.get('type')}: {error.get('message')}", 200)
    shown = []
    for key, value in data.items():
        if key in ("ok", "description", "reward", "note", "problem", "why_not") or value in (None, [], {}):
            continue
        if isinstance(value, list):
            shown.append(f"{len(value)} {key}")
        elif isinstance(value, dict):
            if key in ("eval", "changed", "sizes"):
                shown.append(f"{key} {shorten(json.dumps(value, ensure_ascii=False), 120)}")
        elif isinstance(value, float):
            shown.append(f"{key} {value:.4g}")
        else:
            shown.append(f"{key} {shorten(str(value), 70)}")
    return shorten(", ".join(shown), 240)


Display = TextDisplay | JsonDisplay


def choose_display(as_json: bool) -> Display:
    return JsonDisplay(sys.stdout) if as_json else TextDisplay(sys.stdout)
