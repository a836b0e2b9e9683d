"""Which checkpoints of a run are kept: the best, the newest, every n-th."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from rl_cli.config.tree import GrpoSection
from rl_cli.core.files import read_jsonl
from rl_cli.runs.checkpoints import all_checkpoints
from rl_cli.runs.curves import as_figure, as_number
from rl_cli.runs.rules.stops import WATCHED
from rl_cli.runs.run_dir import RunDir


def to_remove(run: RunDir) -> list[Path]:
    """The complete checkpoints of a run that its config does not ask to keep, oldest first.

    Reads only. What is incomplete is left to whoever resumes the run.
    """
    whole = [one for one in all_checkpoints(run.path) if one.damage(checksums=False) is None]
    accuracies, broken = validations(run), first_not_finite(run)
    kept = keep([one.step for one in whole], accuracies, broken, run.config().grpo)
    return [one.path for one in whole if one.step not in kept]


def keep(
    steps: Collection[int], accuracies: dict[int, float], broken: float, settings: GrpoSection
) -> set[int]:
    """The steps whose checkpoints are kept.

    Args:
        steps: Of the complete checkpoints.
        accuracies: Step -> accuracy on the validation tasks.
        broken: The first step with a figure that is not finite; infinity: none.
        settings: What to keep.
    """
    good = sorted(step for step in steps if step < broken)
    kept = {max(steps)} if steps else set()
    kept.update(good[-settings.keep_last :])
    if settings.keep_every:
        kept.update(step for step in good if step % settings.keep_every == 0)
    if judged := [step for step in good if step in accuracies]:
        kept.add(max(judged, key=lambda step: (accuracies[step], step)))
    return kept


def validations(run: RunDir) -> dict[int, float]:
    """Step -> accuracy on the validation tasks, of the steps that are in metrics.jsonl."""
    found = {}
    for step, row in grpo_rows(run):
        accuracy = as_number(row.get("accuracy/validation"))
        if accuracy is not None and math.isfinite(accuracy):
            found[step] = accuracy
    return found


def first_not_finite(run: RunDir) -> float:
    """The first GRPO step at which the run diverged, by the health rule's figures; infinity: it did not."""
    for step, row in grpo_rows(run):
        numbers = (as_figure(row.get(name)) for name in WATCHED)
        if not all(number is None or math.isfinite(number) for number in numbers):
            return step
    return math.inf


def grpo_rows(run: RunDir) -> Iterator[tuple[int, dict[str, Any]]]:
    """(step, row) of every GRPO step in metrics.jsonl."""
    for row in read_jsonl(run.path / "metrics.jsonl"):
        if row.get("phase") == "grpo" and isinstance(row.get("step"), int):
            yield row["step"], row
