"""Several runs side by side: where their configs differ, and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.runs.attempt_changes import as_text, changes_in_force
from rl_cli.runs.outcome import WHICH, gain, is_replay
from rl_cli.runs.progress import Progress, progress_of
from rl_cli.runs.reports.config_changes import flat_config
from rl_cli.runs.reports.facts import is_watched
from rl_cli.runs.reports.paired import answers, compare_answers
from rl_cli.runs.run_dir import RunDir

LAST_STEPS = 5
FIGURES = ("reward/mean", "groups/with_signal", "entropy", "completion/mean_tokens", "seconds/step")
TESTED = "final"
"""The evaluation whose answers are compared problem by problem."""


def compare(runs: Sequence[RunDir], progresses: Sequence[Progress] | None = None) -> dict[str, Any]:
    """{"runs": [summaries], "config", "eval", "standard_errors", "last", "n", "seeds", "paired", "notes"}.

    `config`, `eval`, `standard_errors` and `last` map a name to one value per run (None where there is none):
    the dotted config fields that differ, the accuracies with their gain and the standard errors of both, and
    the mean of some figures over the last five GRPO steps. `n` and `seeds` have one value per run. `paired`
    has one entry for each run but the first, which it is compared with on the same test problems: `first`,
    `second`, and either the test's figures (see `paired.Paired`) with a `sentence`, or `why_not`. `notes` are
    sentences: what forbids a comparison, or limits it.

    Args:
        runs: Two or more.
        progresses: What their files add up to; read anew where it is not given.
    """
    summaries = [run.summary() for run in runs]
    known = progresses or [progress_of(run) for run in runs]
    configs = [_config(run, summary) for run, summary in zip(runs, summaries, strict=True)]
    names = list(dict.fromkeys(name for config in configs for name in config))
    fields = {name: [config.get(name) for config in configs] for name in names}
    evaluation: dict[str, list[Any]] = {which: [s["eval"][which] for s in summaries] for which in WHICH}
    evaluation["gain"] = [gain(s["eval"]) for s in summaries]
    errors: dict[str, list[Any]] = {
        which: [_standard_error(s, which) for s in summaries] for which in evaluation if which != "gain"
    }
    errors["gain"] = [_gain_error(s) for s in summaries]
    seeds = [config.get("seed") for config in configs]
    bests = [progress.validations.best() for progress in known]
    evaluation["validation, best"] = [best[1] if best else None for best in bests]
    return {
        "runs": summaries,
        "config": {name: values for name, values in fields.items() if any(v != values[0] for v in values)},
        "eval": {name: values for name, values in evaluation.items() if any(v is not None for v in values)},
        "standard_errors": {
            name: values for name, values in errors.items() if any(v is not None for v in values)
        },
        "last": {name: [_mean_of_last(progress, name) for progress in known] for name in FIGURES},
        "n": [s["eval"]["n"] for s in summaries],
        "seeds": seeds,
        "paired": [
            _paired(runs[0], run, summaries[0], summary)
            for run, summary in zip(runs[1:], summaries[1:], strict=True)
        ],
        "notes": [*_notes(summaries, seeds), *_resumed(runs, summaries)],
    }


def _paired(first: RunDir, second: RunDir, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The second run against the first on the same test problems."""
    ids = {"first": first.id, "second": second.id}
    if is_watched(one) or is_watched(other):
        return {**ids, "why_not": "W&B does not hold the single answers"}
    if one["environment"] != other["environment"]:
        return {**ids, "why_not": "the environments differ"}
    tested = compare_answers(answers(first, TESTED), answers(second, TESTED))
    if isinstance(tested, str):
        return {**ids, "why_not": tested}
    return {**ids, **asdict(tested), "sentence": tested.sentence()}


def paired_sentences(compared: dict[str, Any]) -> list[str]:
    """The paired tests of `compare`, for a person."""
    return [
        f"{test['second']} against {test['first']}: {test['sentence']}"
        if "sentence" in test
        else f"No paired test of {test['second']} against {test['first']}: {test['why_not']}."
        for test in compared["paired"]
    ]


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
    if watched := [s["id"] for s in summaries if is_watched(s)]:
        found.append(f"Followed in W&B, config and environment not known here: {', '.join(watched)}.")
    ours = [(s, seed) for s, seed in zip(summaries, seeds, strict=True) if not is_watched(s)]
    if len({s["environment"] for s, _ in ours}) > 1:
        found.append("The environments differ: accuracies on different tasks are not comparable.")
    trained = [s for s, _ in ours if not is_replay(s)]
    if trained:
        known = [seed for _, seed in ours]
        same = len({str(seed) for seed in known}) == 1
        said = "All have the same seed" if same else f"The seeds differ ({', '.join(map(str, known))})"
        why = "how much seeds differ among themselves is not in these figures"
        found.append(f"{said}; {why}. ± is one standard error, of the test problems alone.")
    return found


def _resumed(runs: Sequence[RunDir], summaries: Sequence[dict[str, Any]]) -> list[str]:
    """Runs that did not train with one config."""
    found = []
    for run, summary in zip(runs, summaries, strict=True):
        midway = [] if is_watched(summary) else [one for one in changes_in_force(run) if one.step]
        if midway:
            told = "; ".join(change.in_words() for change in midway)
            found.append(f"{run.id} was resumed with another config: {told}.")
    return found


def _config(run: RunDir, summary: dict[str, Any]) -> dict[str, Any]:
    if is_watched(summary):  # its run.yaml says only where to look
        return {}
    try:
        config = flat_config(run)
    except (RlCliError, OSError, ValueError):  # a run.yaml of another version
        return {}
    return {**config, **_changed_midway(run)}


def _changed_midway(run: RunDir) -> dict[str, str]:
    """Fields with another value after a step: all values, with their steps."""
    found: dict[str, str] = {}
    for change in changes_in_force(run):
        if change.step:
            told = found.get(change.field, as_text(change.old))
            found[change.field] = f"{told} -> {as_text(change.new)} after step {change.step}"
    return found


def _mean_of_last(progress: Progress, name: str) -> float | None:
    values = progress.grpo[name].last(LAST_STEPS)
    return round(math.fsum(values) / len(values), 6) if values else None
