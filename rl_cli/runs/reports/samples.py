"""Rollouts that a report shows: a few over the run, and those at a jump of the reward."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.core.files import read_jsonl
from rl_cli.core.redaction import redact_text
from rl_cli.runs.outcome import is_right, pick_samples, spread
from rl_cli.runs.reports.page import Answer, Block, Sample, Text
from rl_cli.runs.run_dir import RunDir

LONGEST_TEXT = 6000
JUMP = "reward_jump"
"""The health rule whose alert asks for samples."""
AFTER_JUMP = 3
"""Steps from the jump on whose samples are shown."""


def chosen(run: RunDir) -> list[dict[str, Any]]:
    """A right and a wrong rollout, as far as there are, of three steps; read without holding the file."""
    steps = spread(list(dict.fromkeys(row.get("step") for row in _rows(run))))
    return pick_samples([row for row in _rows(run) if row.get("step") in steps])


def samples(run: RunDir) -> list[Block]:
    """One box per step and prompt, with a right and a wrong completion where the run kept both."""
    return _boxes(chosen(run))


def at_jumps(run: RunDir, alerts: Sequence[dict[str, Any]]) -> list[Block]:
    """What earned the reward where it jumped, for a person to judge whether it deserves it."""
    blocks: list[Block] = []
    for alert in [one for one in alerts if one.get("rule") == JUMP][-2:]:
        evidence = alert["figures"] if isinstance(alert.get("figures"), dict) else {}
        blocks.append(Text(f"{alert.get('message')}: {alert.get('action')}"))
        step, shown = evidence.get("step"), evidence.get("samples")
        rows: list[dict[str, Any]] = []
        if isinstance(step, int):
            near = range(step, step + AFTER_JUMP)
            rows = pick_samples([row for row in _rows(run) if row.get("step") in near], AFTER_JUMP)
        if not rows and isinstance(shown, list):
            rows = [row for row in shown if isinstance(row, dict)]
        blocks += _boxes(rows)
    return blocks


def _rows(run: RunDir) -> Iterator[dict[str, Any]]:
    return read_jsonl(run.path / "samples.jsonl")


def _boxes(rows: Sequence[dict[str, Any]]) -> list[Block]:
    boxes: list[Block] = []
    for (step, task), rollouts in groupby(rows, lambda row: (str(row.get("step")), str(row.get("task_id")))):
        shown = list(rollouts)
        title = [f"step {step}", *([f"task {task}"] if task != "None" else [])]
        expected = shown[0].get("expected")
        if expected is not None:
            title.append(f"expected answer {one_line(str(expected).split('####')[-1], 200)}")
        prompt = shown[0].get("prompt")
        told = "" if prompt is None else _readable(prompt)
        boxes.append(Sample(" · ".join(title), told, [_answer(row) for row in shown]))
    return boxes


def _answer(row: dict[str, Any]) -> Answer:
    right = is_right(row)
    label, tone = {True: ("right", "good"), False: ("wrong", "bad"), None: ("not judged", "")}[right]
    return Answer(label, tone, f" · reward {row.get('reward')}", _readable(row.get("completion")))


def _readable(value: Any) -> str:
    """A prompt or completion, which may be text or messages."""
    if isinstance(value, list):
        parts = [f"[{m.get('role')}] {m.get('content')}" if isinstance(m, dict) else str(m) for m in value]
        value = "\n".join(parts)
    text = redact_text(str(value if value is not None else "")) or "(empty)"
    left = len(text) - LONGEST_TEXT
    return text[:LONGEST_TEXT] + (f"\n… {left} more characters in samples.jsonl" if left > 0 else "")
