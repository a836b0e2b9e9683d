"""Rows of metrics.jsonl as W&B gets them, known again when they are read back."""

from __future__ import annotations

import math
from typing import Any

from rl_cli.runs.curves import as_number
from rl_cli.runs.times import seconds_of

Row = dict[str, Any]
Key = tuple[str, int, float]
"""(axis, step, Unix time): one row. A step that was made again after a resume is another row."""

COMPARED = ("reward/mean", "loss")
AXES = {"grpo": "global_step", "sft": "sft/step"}


def as_logged(row: Row) -> Row:
    """Numbers only, with the axis that they belong to, and when they were measured."""
    figures = {name: as_number(row[name]) for name in row if name not in ("time", "phase", "step")}
    figures = {name: value for name, value in figures.items() if value is not None}
    when = seconds_of(row.get("time"))
    at = {} if when is None else {"time": round(when, 3), "_timestamp": when}
    if row.get("phase") == "sft":
        return {
            "sft/step": row.get("step"),
            **{f"sft/{name}": value for name, value in figures.items()},
            **at,
        }
    return {"global_step": row.get("step"), **figures, **at}


def key_of(row: Row) -> Key | None:
    """The key of a row of metrics.jsonl; None for one that belongs to no step."""
    axis, step = AXES.get(str(row.get("phase"))), row.get("step")
    when = seconds_of(row.get("time"))
    if axis is None or not isinstance(step, int) or when is None:
        return None
    return axis, step, round(when, 3)


def figures_of(row: Row, axis: str = "") -> Row:
    """The figures by which a row is compared.

    Args:
        row: A row of metrics.jsonl; or of a W&B history, then
        axis: the axis that it belongs to: figures of SFT have its name before theirs.
    """
    before = "sft/" if axis == AXES["sft"] else ""
    found = {name: as_number(row.get(before + name)) for name in COMPARED}
    return {name: value for name, value in found.items() if value is not None and math.isfinite(value)}


def key_of_logged(row: Row) -> Key | None:
    """The key of a row of a W&B history; None for one that is not ours."""
    when = as_number(row.get("time"))
    for axis in AXES.values():
        step = as_number(row.get(axis))
        if step is not None and when is not None and math.isfinite(step):
            return axis, int(step), round(when, 3)
    return None
