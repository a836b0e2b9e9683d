"""The report of a run, made from its files: report.html, report.md, and the results as one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rl_cli.core.files import write_atomic
from rl_cli.runs.attempt_changes import as_text, changes_in_force, first_config
from rl_cli.runs.outcome import (
    Checkpoint,
    about,
    checkpoints,
    gain,
    notes,
    outcome_of,
    pick_samples,
    rounded,
    text_summary,
)
from rl_cli.runs.progress import progress_of
from rl_cli.runs.reports.config_changes import config_against_profile
from rl_cli.runs.reports.facts import facts, files, is_watched
from rl_cli.runs.reports.figures import DIGITS, charts, evaluations
from rl_cli.runs.reports.html import as_html
from rl_cli.runs.reports.markdown import as_markdown
from rl_cli.runs.reports.page import Block, Cell, Code, Columns, Page, Section, Table, Text
from rl_cli.runs.reports.samples import at_jumps, chosen, samples
from rl_cli.runs.reports.story import alerts, attempts, decisions
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import now_text
from rl_cli.runs.tracking_file import disagreements, tracking_notes

__all__ = ["page_of", "pick_samples", "results", "text_summary", "write_report", "write_reports"]

MOST_FILES = 40
WRITERS = {"html": as_html, "md": as_markdown}


def write_report(run: RunDir) -> Path:
    """Writes report.html as the run stands now, and returns its path.

    Raises:
        OSError: The run's directory cannot be written.
    """
    return write_reports(run, ("html",))[0]


def write_reports(run: RunDir, formats: Sequence[str] = tuple(WRITERS)) -> list[Path]:
    """Writes report.html, report.md or both, and returns their paths.

    Raises:
        OSError: The run's directory cannot be written.
    """
    page, paths = page_of(run), [run.path / f"report.{name}" for name in formats]
    for name, path in zip(formats, paths, strict=True):
        write_atomic(path, WRITERS[name](page))
    return paths


def results(run: RunDir) -> dict[str, Any]:
    """A run's results as one object, with the keys of `rl_get_results`; writes the report anew."""
    summary, events, state = run.summary(), run.events(), run.state()
    found = checkpoints(run, events)
    keys = ("step", "task_id", "prompt", "completion", "reward", "expected")
    return {
        "run": summary,
        "eval": summary["eval"],
        "gain": gain(summary["eval"]),
        "report": str(write_report(run)),
        "checkpoint": str(found[0].path) if found else None,
        "checkpoint_last": str(found[-1].path) if found else None,
        "checkpoints": [{**asdict(c), "path": str(c.path)} for c in found],
        "samples": [{k: s.get(k) for k in keys} for s in chosen(run)],
        "notes": [*notes(run, state, events), *tracking_notes(run)],
        "last_log_lines": state.get("last_log_lines") or [],
    }


def page_of(run: RunDir) -> Page:
    """What there is to say of a run as it stands now."""
    summary, state, events = run.summary(), run.state(), run.events()
    progress = progress_of(run)
    told, watched = progress.alerts or summary["alerts"], is_watched(summary)
    return Page(
        title=run.id,
        state=summary["state"],
        about=" · ".join(about(summary)),
        outcome=outcome_of(run, DIGITS),
        notes=[*notes(run, state, events, DIGITS, progress), *disagreements(run)],
        sections=[
            Section("Accuracy on the test split", [] if watched else evaluations(run, summary, events)),
            Section("Curves", charts(progress, summary["eval"])),
            Section("Alerts", alerts(told, state)),
            Section("Where the reward jumped", at_jumps(run, told)),
            Section("Attempts", attempts(events, state, first_config(run))),
            Section("Decisions", decisions(events, state)),
            Section("Checkpoints", _checkpoints(checkpoints(run, events))),
            Section("The run", [Table((), facts(run, summary, state, events, progress), kind="facts")]),
            Section("Sample rollouts", samples(run)),
            Section("The end of the trainer's log", _log(state.get("last_log_lines") or [])),
            Section("Config", [] if watched else _config(run, events)),
            Section("Files", _files(run, events)),
        ],
        footer=f"Written {now_text()} from {run.path}. Times are UTC.",
    )


def _checkpoints(found: list[Checkpoint]) -> list[Block]:
    """The checkpoints to use, and the line that loads them."""
    if not found:
        return []
    rows = [
        (
            c.what,
            "" if c.step is None else str(c.step),
            "" if c.accuracy is None else rounded(c.accuracy, DIGITS),
            str(c.path),
        )
        for c in found
    ]
    table = Table(("", "step", "test accuracy", "folder"), rows, 2, "stacked")
    loadable = [c for c in found if list(c.path.glob("*.safetensors"))]
    if not loadable:
        return [table, Text("These folders hold no weights.", "about")]
    lines = ["import transformers"]
    for c in loadable:
        path = repr(str(c.path))
        lines += [
            f"\n# {c.what}",
            f"model = transformers.AutoModelForCausalLM.from_pretrained({path})",
            f"tokenizer = transformers.AutoTokenizer.from_pretrained({path})",
        ]
    return [table, Code("\n".join(lines))]


def _log(lines: list[str]) -> list[Block]:
    return [Code("\n".join(lines))] if lines else []


def _config(run: RunDir, events: Sequence[dict[str, Any]]) -> list[Block]:
    tables, any_changed = [], False
    before: dict[str, list[str]] = {}
    for change in changes_in_force(run, events):
        if change.step:
            before.setdefault(change.field, []).append(f"{as_text(change.old)} up to step {change.step}")
    for section, fields in config_against_profile(run).items():
        rows: list[tuple[str, Cell]] = []
        marked = set()
        for name, (value, default) in fields.items():
            changed = default is not None and default != value
            if changed:
                marked.add(len(rows))
            aside = [
                *before.get(f"{section}.{name}", []),
                *([f"{default} in the profile"] if changed else []),
            ]
            rows.append((name, Cell(value, f"({'; '.join(aside)})" if aside else "")))
        any_changed |= bool(marked)
        tables.append(Table((section, ""), rows, kind="fixed", marked=frozenset(marked)))
    note: list[Block] = [Text("Marked: changed from the profile's defaults.", "about")] if any_changed else []
    return [*note, Columns(tables)] if tables else []


def _files(run: RunDir, events: Sequence[dict[str, Any]]) -> list[Block]:
    found = files(run)
    rows = [(name, f"{size:,}", what) for name, size, what in found[:MOST_FILES]]
    left: list[Block] = []
    if len(found) > MOST_FILES:
        size = sum(size for _, size, _ in found[MOST_FILES:])
        left = [Text(f"{len(found) - MOST_FILES} more, {size:,} bytes.", "about")]
    uploads = [Text(note, "about") for note in tracking_notes(run)]
    return [Table(("file", "bytes", ""), rows, 1, "narrow"), *left, *uploads]
