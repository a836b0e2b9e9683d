"""compare.html: several runs on one page, their curves over each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rl_cli.core.files import write_atomic
from rl_cli.runs.attempt_changes import as_text
from rl_cli.runs.outcome import about, is_replay, outcome_of, rounded
from rl_cli.runs.progress import Progress, progress_of
from rl_cli.runs.reports.charts import COLOURS
from rl_cli.runs.reports.compare import compare, paired_sentences
from rl_cli.runs.reports.figures import CURVES, DIGITS
from rl_cli.runs.reports.html import as_html
from rl_cli.runs.reports.page import Block, Cell, Chart, Charts, Page, Section, Table, Text
from rl_cli.runs.reports.story import STATE_TONES
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import now_text


def write_comparison(runs: Sequence[RunDir], path: Path) -> None:
    """Writes the page.

    Args:
        runs: Two to six.
        path: The file; it is replaced.

    Raises:
        OSError: It cannot be written.
    """
    write_atomic(path, as_html(comparison(runs[:COLOURS])))


def comparison(runs: Sequence[RunDir]) -> Page:
    """The page as data."""
    progresses = [progress_of(run) for run in runs]
    compared = compare(runs, progresses)
    tested = paired_sentences(compared)
    ids = [run.id for run in runs]
    environments = dict.fromkeys(str(s["environment"]) for s in compared["runs"] if s["environment"])
    return Page(
        title=f"{len(runs)} runs compared",
        state="",
        about=" · ".join(environments),
        outcome=_outcome(compared, tested),
        notes=compared["notes"],
        sections=[
            Section("The runs", _runs(runs, compared)),
            Section("On the same test problems", [Text(said) for said in tested]),
            Section("Accuracy", _accuracies(compared, ids)),
            Section("Curves", _curves(progresses, ids)),
            Section("Where the configs differ", _config(compared, ids)),
            Section("Mean of the last five steps", _last(compared, ids)),
        ],
        footer=f"Written {now_text()}.",
    )


def _outcome(compared: dict[str, Any], tested: Sequence[str]) -> str:
    """The first paired test, where there is one; else the accuracies that runs ended with."""
    if "sentence" in compared["paired"][0]:
        return tested[0]
    ends = [(str(s["id"]), s["eval"]["final"]) for s in compared["runs"]]
    known = [f"{run_id} ended at {rounded(value, DIGITS)}" for run_id, value in ends if value is not None]
    played = [s for s in compared["runs"] if is_replay(s)]
    whose = " (figures of the files that were played)" if len(played) == len(ends) else ""
    return f"Accuracy: {', '.join(known)}{whose}." if known else "No accuracies to compare."


def _runs(runs: Sequence[RunDir], compared: dict[str, Any]) -> list[Block]:
    rows: list[list[Cell | str]] = [
        [
            str(summary["id"]),
            Cell(summary["state"], tone=STATE_TONES.get(summary["state"], "")),
            ", ".join(about(summary)),
            outcome_of(run, DIGITS),
        ]
        for run, summary in zip(runs, compared["runs"], strict=True)
    ]
    return [Table(("run", "state", "what", "outcome"), rows, kind="stacked")]


def _accuracies(compared: dict[str, Any], ids: Sequence[str]) -> list[Block]:
    rows = []
    for name, values in compared["eval"].items():
        errors = compared["standard_errors"].get(name, [None] * len(values))
        rows.append([name, *(_measured(value, error) for value, error in zip(values, errors, strict=True))])
    if not rows:
        return []
    rows.append(["test problems", *("–" if n is None else str(n) for n in compared["n"])])
    return [_by_run(ids, rows)]


def _measured(value: float | None, error: float | None) -> str:
    if value is None:
        return "–"
    return rounded(value, DIGITS) + ("" if error is None else f" ± {rounded(error, DIGITS)}")


def _curves(progresses: Sequence[Progress], ids: Sequence[str]) -> list[Block]:
    found = []
    for title, name in CURVES:
        curves = [progress.grpo[name] for progress in progresses]
        if any(any(curve.values) for curve in curves):
            bounds = (0.0, 1.0) if title.endswith("share") else None
            found.append(Chart(title, list(zip(ids, curves, strict=True)), bounds=bounds))
    measured = [progress.validations for progress in progresses]
    if any(len(curve) for curve in measured):
        few = max(map(len, measured)) <= 60
        named = list(zip(ids, measured, strict=True))
        found.insert(1, Chart("Validation accuracy", named, dots=few, bounds=(0.0, 1.0)))
    return [Charts(found)] if found else []


def _config(compared: dict[str, Any], ids: Sequence[str]) -> list[Block]:
    rows = [[name, *map(as_text, values)] for name, values in compared["config"].items()]
    return [_by_run(ids, rows)] if rows else [Text("They have the same config.", "about")]


def _last(compared: dict[str, Any], ids: Sequence[str]) -> list[Block]:
    rows = [
        [name, *("–" if value is None else f"{value:.4g}" for value in values)]
        for name, values in compared["last"].items()
        if any(value is not None for value in values)
    ]
    return [_by_run(ids, rows)] if rows else []


def _by_run(ids: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(("", *ids), rows, kind="stacked")
