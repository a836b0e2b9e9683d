"""Several runs side by side: where their configs differ, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.runs.config_changes import flat_config
from rl_cli.runs.outcome import WHICH, gain
from rl_cli.runs.progress import finite, number
from rl_cli.runs.run_dir import RunDir

LAST_STEPS = 5
FIGURES = ("reward/mean", "groups/with_signal", "entropy", "completion/mean_tokens", "seconds/step")


def compare(runs: Sequence[RunDir]) -> dict[str, Any]:
    """Returns {"runs": [summaries], "config": {...}, "eval": {...}, "last": {...}}.

    The last three map a name to one value per run (None where a run has none): the dotted config fields that
    differ, the accuracies with their gain, and the mean of some figures over the last five GRPO steps.
    """
    summaries = [run.summary() for run in runs]
    configs = [_config(run) for run in runs]
    names = list(dict.fromkeys(name for config in configs for name in config))
    fields = {name: [config.get(name) for config in configs] for name in names}
    rows = [[row for row in run.metrics() if row.get("phase") == "grpo"] for run in runs]
    evaluation: dict[str, list[Any]] = {which: [s["eval"][which] for s in summaries] for which in WHICH}
    evaluation["gain"] = [gain(s["eval"]) for s in summaries]
    evaluation["validation, best"] = [max(finite(r, "accuracy/validation"), default=None) for r in rows]
    return {
        "runs": summaries,
        "config": {name: values for name, values in fields.items() if any(v != values[0] for v in values)},
        "eval": {name: values for name, values in evaluation.items() if any(v is not None for v in values)},
        "last": {name: [_mean_of_last(r, name) for r in rows] for name in FIGURES},
    }


def _config(run: RunDir) -> dict[str, Any]:
    try:
        return flat_config(run)
    except (RlCliError, OSError, ValueError):  # a run.yaml of another version
        return {}


def _mean_of_last(rows: list[dict[str, Any]], name: str) -> float | None:
    values = finite([row for row in rows if number(row, name) is not None][-LAST_STEPS:], name)
    return round(sum(values) / len(values), 6) if values else None
