"""Several runs side by side: where their configs differ, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.runs.config_changes import flat_config
from rl_cli.runs.outcome import WHICH, gain, is_replay
from rl_cli.runs.progress import finite, number
from rl_cli.runs.run_dir import RunDir

LAST_STEPS = 5
FIGURES = ("reward/mean", "groups/with_signal", "entropy", "completion/mean_tokens", "seconds/step")


def compare(runs: Sequence[RunDir]) -> dict[str, Any]:
    """Returns {"runs": [summaries], "config", "eval", "standard_errors", "last", "n", "seeds", "notes"}.

    `config`, `eval`, `standard_errors` and `last` map a name to one value per run (None where there is none):
    the dotted config fields that differ, the accuracies with their gain and the standard errors of both, and
    the mean of some figures over the last five GRPO steps. `n` and `seeds` have one value per run. `notes`
    are sentences: what forbids a comparison, or limits it.
    """
    summaries = [run.summary() for run in runs]
    configs = [_config(run) for run in runs]
    names = list(dict.fromkeys(name for config in configs for name in config))
    fields = {name: [config.get(name) for config in configs] for name in names}
    rows = [[row for row in run.metrics() if row.get("phase") == "grpo"] for run in runs]
    evaluation: dict[str, list[Any]] = {which: [s["eval"][which] for s in summaries] for which in WHICH}
    evaluation["gain"] = [gain(s["eval"]) for s in summaries]
    errors: dict[str, list[Any]] = {
        which: [_standard_error(s, which) for s in summaries] for which in evaluation if which != "gain"
    }
    errors["gain"] = [_gain_error(s) for s in summaries]
    seeds = [config.get("seed") for config in configs]
    evaluation["validation, best"] = [max(finite(r, "accuracy/validation"), default=None) for r in rows]
    return {
        "runs": summaries,
        "config": {name: values for name, values in fields.items() if any(v != values[0] for v in values)},
        "eval": {name: values for name, values in evaluation.items() if any(v is not None for v in values)},
        "standard_errors": {
            name: values for name, values in errors.items() if any(v is not None for v in values)
        },
        "last": {name: [_mean_of_last(r, name) for r in rows] for name in FIGURES},
        "n": [s["eval"]["n"] for s in summaries],
        "seeds": seeds,
        "notes": _notes(summaries, seeds),
    }


def _standard_error(summary: dict[str, Any], which: str) -> float | None:
    """Of a share of n independent problems: sqrt(p (1 - p) / n). None for what was not measured."""
    accuracy, n = summary["eval"].get(which), summary["eval"]["n"]
    if accuracy is None or not n or is_replay(summary):
        return None
    return round(math.sqrt(max(0.0, accuracy * (1 - accuracy)) / n), 6)


def _gain_error(summary: dict[str, Any]) -> float | None:
    """Of final minus initial, as if they were independent."""
    first, last = (_standard_error(summary, which) for which in ("initial", "final"))
    return None if first is None or last is None else round(math.hypot(first, last), 6)


def _notes(summaries: list[dict[str, Any]], seeds: list[Any]) -> list[str]:
    found = []
    if played := [s["id"] for s in summaries if is_replay(s)]:
        found.append(
            f"Played from a file, nothing was trained: {', '.join(played)}. "
            "Figures that were not measured are not comparable."
        )
    if len({s["environment"] for s in summaries}) > 1:
        found.append("The environments differ: accuracies on different tasks are not comparable.")
    if len(played) < len(summaries):
        same = len({str(seed) for seed in seeds}) == 1
        said = "All have the same seed" if same else f"The seeds differ ({', '.join(map(str, seeds))})"
        why = "how much seeds differ among themselves is not in these figures"
        found.append(f"{said}; {why}. ± is one standard error, of the test problems alone.")
    return found


def _config(run: RunDir) -> dict[str, Any]:
    try:
        return flat_config(run)
    except (RlCliError, OSError, ValueError):  # a run.yaml of another version
        return {}


def _mean_of_last(rows: list[dict[str, Any]], name: str) -> float | None:
    values = finite([row for row in rows if number(row, name) is not None][-LAST_STEPS:], name)
    return round(sum(values) / len(values), 6) if values else None
