"""report.html: the whole run on one page that needs nothing else, no script, no font, no link.

Everything that comes from the run is text here, never markup: samples and logs may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from rl_cli.core.files import write_atomic
from rl_cli.core.json_text import repair_surrogates
from rl_cli.runs.charts import Point, chart
from rl_cli.runs.outcome import (
    WHICH,
    checkpoints,
    gain,
    interval,
    is_replay,
    notes,
    pick_samples,
    sentence,
    text_summary,
    wandb_note,
)
from rl_cli.runs.progress import Row, number, progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import duration, now_text, since

__all__ = ["render", "results", "text_summary", "write_report"]

CURVES = (
    ("Reward, mean", "reward/mean"),
    ("Groups with signal, share", "groups/with_signal"),
    ("Entropy, nats per token", "entropy"),
    ("GRPO loss", "loss"),
    ("Gradient norm", "grad_norm"),
    ("Completion length, tokens", "completion/mean_tokens"),
    ("Completions cut off, share", "completion/clipped"),
    ("KL to the start, per token", "kl"),
    ("Rollouts that failed", "rollouts/errors"),
)
WHAT_FILES_HOLD = {
    "run.yaml": "the resolved config",
    "state.json": "state, reason, evaluation",
    "events.jsonl": "what happened, in order",
    "metrics.jsonl": "figures of every step",
    "samples.jsonl": "rollouts to look at",
    "checks.json": "judgements that were due",
    "stop.json": "the request to stop",
}
LONGEST_TEXT = 6000


def write_report(run: RunDir) -> Path:
    """Writes report.html as the run stands now, and returns its path.

    Raises:
        OSError: The run's directory cannot be written.
    """
    path = run.path / "report.html"
    write_atomic(path, render(run))
    return path


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
        "samples": [{k: s.get(k) for k in keys} for s in pick_samples(run.samples())],
        "notes": [*notes(run, state, events), *wandb_note(events)],
        "last_log_lines": state.get("last_log_lines") or [],
    }


def render(run: RunDir) -> str:
    """The page as text."""
    summary, state, events = run.summary(), run.state(), run.events()
    style = Path(__file__).with_name("report.css").read_text("utf-8")
    about = " · ".join(
        str(part)
        for part in (
            summary["environment"],
            f"profile {summary['profile']}",
            f"backend {summary['backend']}",
            f"model {summary['model']}",
        )
    )
    body = [
        f"<header><h1>{escape(run.id)}<span class='state {summary['state']}'>{summary['state']}</span></h1>",
        f"<p class='about'>{escape(about)}</p>",
        f"<p class='outcome'>{escape(sentence(summary))}</p>",
        *(f"<p class='note'>{escape(note)}</p>" for note in notes(run, state, events)),
        "</header>",
        _section("Accuracy on the test split", _evaluations(summary["eval"], is_replay(summary))),
        _section("Curves", _curves(run, summary["eval"])),
        _section("Alerts", _alerts(summary["alerts"], state)),
        _section("Decisions", _decisions(events, state)),
        _section("Sample rollouts", _samples(run.samples())),
        _section("The end of the trainer's log", _log(state.get("last_log_lines") or [])),
        _section("Config", _config(run)),
        _section("Files", _files(run)),
        f"<footer>Written {now_text()} from {escape(str(run.path))}. Times are UTC.</footer>",
    ]
    head = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(run.id)}: {summary['state']}</title><style>{style}</style></head>"
    )
    return repair_surrogates(f"{head}<body>{''.join(body)}</body></html>\n")


def _section(title: str, content: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{content}</section>" if content else ""


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0, kind: str = "") -> str:
    """Cells are markup already. The `numbers` columns after the first are aligned right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        marks = [" class='number'" if 1 <= i <= numbers else "" for i in range(len(row))]
        return "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, row, strict=True))

    head = f"<thead><tr>{cells('th', heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table class='{kind}'>{head}<tbody>{body}</tbody></table>"


def _evaluations(evaluation: dict[str, Any], replay: bool) -> str:
    meaning = {
        "untrained": "the model before any training",
        "initial": "where GRPO started",
        "best": "the checkpoint chosen on validation",
        "final": "where GRPO ended",
    }
    rows = []
    for which in WHICH:
        value, n = evaluation[which], evaluation["n"]
        if value is None:
            continue
        low, high = interval(value, n) if n else (value, value)
        first = evaluation["initial"] if which in ("best", "final") else None
        change = None if first is None else value - first
        rows.append(
            [
                f"{which}, <span class='none'>{meaning[which]}</span>",
                f"{value:.4f}",
                f"{low:.3f} to {high:.3f}",
                f"{change:+.4f}" if change is not None else "",
            ]
        )
    if not rows:
        return "<p class='none'>nothing was evaluated</p>"
    table = _table(("", "accuracy", "95 % interval", "gain over initial"), rows, 3, "narrow")
    if replay:
        return f"{table}<p class='about'>Figures of the file that was played; nothing was measured.</p>"
    change = gain(evaluation)
    total = f"<p>GRPO added <strong>{change:+.4f}</strong>.</p>" if change is not None else ""
    return f"{table}<p class='about'>{evaluation['n']} test problems, answered greedily.</p>{total}"


def _curves(run: RunDir, evaluation: dict[str, Any]) -> str:
    progress = progress_of(run)
    grpo, sft = progress.grpo(), [row for row in progress.rows if row.get("phase") == "sft"]
    figures = [chart(*CURVES[0][:1], _points(grpo, CURVES[0][1]))]
    if progress.validations:
        levels = [("initial (test)", evaluation["initial"])] if evaluation["initial"] is not None else []
        points = [(float(step), value) for step, value in sorted(progress.validations.items())]
        figures.append(chart("Validation accuracy", points, dots=True, levels=levels, bounds=(0.0, 1.0)))
    for title, name in CURVES[1:]:
        points = _points(grpo, name)
        bounds = (0.0, 1.0) if title.endswith("share") else None
        if points and (name != "rollouts/errors" or any(y for _, y in points)):
            figures.append(chart(title, points, bounds=bounds))
    if sft:
        figures.append(chart("SFT loss", _points(sft, "loss")))
    return f"<div class='charts'>{''.join(figures)}</div>"


def _points(rows: list[Row], name: str) -> list[Point]:
    values = [(row.get("step"), number(row, name)) for row in rows]
    return [(float(x), y) for x, y in values if isinstance(x, int) and y is not None]


def _alerts(alerts: list[dict[str, Any]], state: dict[str, Any]) -> str:
    rows = [
        [
            _moment(a.get("time"), state),
            escape(str(a.get("rule"))),
            escape(str(a.get("message"))),
            escape(str(a.get("action"))),
        ]
        for a in alerts
    ]
    return _table(("after", "rule", "what was seen", "what to do"), rows, kind="log-like") if rows else ""


def _decisions(events: list[dict[str, Any]], state: dict[str, Any]) -> str:
    rows = []
    for event in events:
        kind = event.get("kind")
        if kind == "state":
            who, what = "supervisor", str(event.get("state"))
        elif kind == "decision":
            who, what = str(event.get("by")), str(event.get("what"))
        elif kind == "stop_requested":
            who, what = str(event.get("by")), "asks to stop"
        else:
            continue
        cells = (who, what, str(event.get("reason") or ""))
        rows.append([_moment(event.get("time"), state), *map(escape, cells)])
    return _table(("after", "who", "what", "why"), rows, kind="log-like") if rows else ""


def _moment(time: Any, state: dict[str, Any]) -> str:
    passed = since(state.get("created"), str(time))
    return f"<span title='{escape(str(time))}'>{duration(passed)}</span>"


def _samples(samples: list[dict[str, Any]]) -> str:
    return "".join(
        f"<div class='sample'><p>step {escape(str(s.get('step')))} · task {escape(str(s.get('task_id')))}"
        f" · reward {escape(str(s.get('reward')))}</p>"
        f"<pre>{_text(s.get('prompt'))}</pre><pre>{_text(s.get('completion'))}</pre></div>"
        for s in pick_samples(samples)
    )


def _text(value: Any) -> str:
    """A prompt or completion, which may be text or messages, as escaped text."""
    if isinstance(value, list):
        parts = [f"[{m.get('role')}] {m.get('content')}" if isinstance(m, dict) else str(m) for m in value]
        value = "\n".join(parts)
    text = str(value if value is not None else "") or "(empty)"
    cut = (
        f"\n… {len(text) - LONGEST_TEXT} more characters in samples.jsonl" if len(text) > LONGEST_TEXT else ""
    )
    return escape(text[:LONGEST_TEXT] + cut)


def _log(lines: list[str]) -> str:
    return f"<div class='log'>{escape(chr(10).join(lines))}</div>" if lines else ""


def _config(run: RunDir) -> str:
    from rl_cli.runs.config_changes import config_against_profile

    changed_note, sections = False, []
    for name, fields in config_against_profile(run).items():
        rows = []
        for field, (value, default) in fields.items():
            changed = default is not None and default != value
            changed_note |= changed
            was = f" <span class='none'>({escape(default or '')} in the profile)</span>" if changed else ""
            mark = " class='changed'" if changed else ""
            rows.append(f"<tr{mark}><td>{escape(field)}</td><td>{escape(value)}{was}</td></tr>")
        head = f"<thead><tr><th>{escape(name)}</th><th></th></tr></thead>"
        sections.append(f"<table class='fixed'>{head}{''.join(rows)}</table>")
    note = "<p class='about'>Marked: changed from the profile's defaults.</p>" if changed_note else ""
    return f"{note}<div class='config'>{''.join(sections)}</div>"


def _files(run: RunDir) -> str:
    rows = []
    for path in sorted(run.path.rglob("*")):
        name = str(path.relative_to(run.path))
        if path.is_file() and not name.startswith((".", "wandb/")) and name != "report.html":
            what = WHAT_FILES_HOLD.get(name, "")
            rows.append([escape(name), f"{path.stat().st_size:,}", escape(what)])
    return _table(("file", "bytes", ""), rows[:200], 1, "narrow")
