"""report.html: the whole run on one page that needs nothing else, no script, no font, no link.

Everything that comes from the run is text here, never markup: samples and logs may hold anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from rl_cli.core.files import write_atomic
from rl_cli.core.json_text import repair_surrogates
from rl_cli.core.redaction import redact_text
from rl_cli.runs.charts import chart
from rl_cli.runs.outcome import (
    WHICH,
    Checkpoint,
    checkpoints,
    evaluated,
    gain,
    gain_interval,
    interval,
    is_replay,
    is_right,
    notes,
    pick_samples,
    rounded,
    sentence,
    signed,
    text_summary,
    wandb_note,
)
from rl_cli.runs.progress import progress_of
from rl_cli.runs.report_facts import facts, files
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
    ("Reward, standard deviation", "reward/std"),
    ("Logprob difference to the sampler, largest", "logprob/max_diff"),
    ("Rollouts that failed", "rollouts/errors"),
)
DIGITS = 3
"""Of an accuracy, after the point: one problem of 400 is 0.0025."""
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
        f"<p class='outcome'>{escape(sentence(summary, DIGITS))}</p>",
        *(f"<p class='note'>{escape(note)}</p>" for note in notes(run, state, events, DIGITS)),
        "</header>",
        _section("Accuracy on the test split", _evaluations(summary["eval"], events, is_replay(summary))),
        _section("Checkpoints", _checkpoints(checkpoints(run, events))),
        _section("The run", _facts(run, summary, state, events)),
        _section("Curves", _curves(run, summary["eval"])),
        _section("Alerts", _alerts(summary["alerts"], state)),
        _section("Decisions", _decisions(events, state)),
        _section("Sample rollouts", _samples(run.samples())),
        _section("The end of the trainer's log", _log(state.get("last_log_lines") or [])),
        _section("Config", _config(run)),
        _section("Files", _files(run, events)),
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
    return f"<div class='wide'><table class='{kind}'>{head}<tbody>{body}</tbody></table></div>"


def _evaluations(evaluation: dict[str, Any], events: Sequence[dict[str, Any]], replay: bool) -> str:
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
        low, high = interval(value, n) if n and not replay else (None, None)
        first = evaluation["initial"] if which in ("best", "final") and not replay else None
        step = evaluated(events, which)[0] if which in ("best", "final") else None
        at = "" if step is None else f", step {step}"
        rows.append(
            [
                f"{which}, <span class='none'>{meaning[which]}{at}</span>",
                rounded(value, DIGITS),
                "" if low is None or high is None else f"{rounded(low, DIGITS)} to {rounded(high, DIGITS)}",
                "" if first is None else _signed(value - first),
            ]
        )
    if not rows:
        return "<p class='none'>nothing was evaluated</p>"
    table = _table(("", "accuracy", "95 % interval", "gain over initial"), rows, 3, "narrow")
    if replay:
        return f"{table}<p class='about'>Figures of the file that was played; nothing was measured.</p>"
    change, total = gain(evaluation), ""
    if change is not None:
        total = f"<p>GRPO added <strong>{_signed(change)}</strong>"
        if evaluation["n"]:
            low, high = gain_interval(evaluation["initial"], evaluation["final"], evaluation["n"])
            total += (
                f", 95 % interval {_signed(low)} to {_signed(high)} <span class='none'>(Newcombe's, as if "
                "the two were independent; chance in the problems, not between seeds)</span>"
            )
        total += ".</p>"
    about = f"{evaluation['n']} test problems, answered greedily. Intervals of accuracies are Wilson's."
    return f"{table}<p class='about'>{about}</p>{total}"


def _signed(value: float) -> str:
    return signed(value, DIGITS)


def _checkpoints(found: list[Checkpoint]) -> str:
    """The checkpoints to use, and the line that loads them."""
    if not found:
        return ""
    rows = [
        [
            escape(c.what),
            "" if c.step is None else str(c.step),
            "" if c.accuracy is None else rounded(c.accuracy, DIGITS),
            escape(str(c.path)),
        ]
        for c in found
    ]
    table = _table(("", "step", "test accuracy", "folder"), rows, 2)
    loadable = [c for c in found if list(c.path.glob("*.safetensors"))]
    if not loadable:
        return f"{table}<p class='about'>These folders hold no weights.</p>"
    lines = ["import transformers"]
    for c in loadable:
        path = repr(str(c.path))
        lines += [
            f"\n# {c.what}",
            f"model = transformers.AutoModelForCausalLM.from_pretrained({path})",
            f"tokenizer = transformers.AutoTokenizer.from_pretrained({path})",
        ]
    return f"{table}<div class='log'>{escape(chr(10).join(lines))}</div>"


def _facts(
    run: RunDir, summary: dict[str, Any], state: dict[str, Any], events: Sequence[dict[str, Any]]
) -> str:
    rows = [[escape(name), escape(value)] for name, value in facts(run, summary, state, events)]
    return _table((), rows, kind="facts")


def _curves(run: RunDir, evaluation: dict[str, Any]) -> str:
    progress = progress_of(run)
    grpo, sft = progress.grpo, progress.sft
    figures = [chart(CURVES[0][0], grpo[CURVES[0][1]].points())]
    if progress.validations:
        levels = [("initial (test)", evaluation["initial"])] if evaluation["initial"] is not None else []
        points = progress.validations.points()
        figures.append(chart("Validation accuracy", points, dots=True, levels=levels, bounds=(0.0, 1.0)))
    for title, name in CURVES[1:]:
        points = grpo[name].points()
        bounds = (0.0, 1.0) if title.endswith("share") else None
        if points and (name != "rollouts/errors" or any(y for _, y in points)):
            figures.append(chart(title, points, bounds=bounds))
    if len(sft):
        figures.append(chart("SFT loss", sft["loss"].points()))
    return f"<div class='charts'>{''.join(figures)}</div>"


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
        cells = (who, _short_figures(what), _short_figures(str(event.get("reason") or "")))
        rows.append([_moment(event.get("time"), state), *map(escape, cells)])
    return _table(("after", "who", "what", "why"), rows, kind="log-like") if rows else ""


def _short_figures(said: str) -> str:
    """The text with at most four digits after a point."""
    return re.sub(r"(?<![\w.])\d+\.\d{5,}(?![\w.])", lambda match: f"{float(match[0]):.4f}", said)


def _moment(time: Any, state: dict[str, Any]) -> str:
    passed = since(state.get("started") or state.get("created"), str(time))
    return f"<span title='{escape(str(time))}'>{duration(passed)}</span>"


def _samples(samples: list[dict[str, Any]]) -> str:
    """One box per step and prompt, with a right and a wrong completion where the run kept both."""
    boxes = []
    for (step, task, prompt), rollouts in groupby(pick_samples(samples), _question):
        shown = list(rollouts)
        answer = shown[0].get("expected")
        expected = (
            "" if answer is None else f" · expected answer {escape(str(answer).split('####')[-1].strip())}"
        )
        boxes.append(f"<div class='sample'><p>step {escape(step)} · task {escape(task)}{expected}</p>")
        boxes.append(f"<pre>{_text(prompt)}</pre>")
        for sample in shown:
            right = is_right(sample)
            kind, label = ("good", "right") if right else ("bad", "wrong")
            label = "not judged" if right is None else label
            boxes.append(
                f"<p><span class='{kind}'>{label}</span> · reward {escape(str(sample.get('reward')))}</p>"
            )
            boxes.append(f"<pre>{_text(sample.get('completion'))}</pre>")
        boxes.append("</div>")
    return "".join(boxes)


def _question(sample: dict[str, Any]) -> tuple[str, str, Any]:
    return str(sample.get("step")), str(sample.get("task_id")), sample.get("prompt")


def _text(value: Any) -> str:
    """A prompt or completion, which may be text or messages, as escaped text."""
    if isinstance(value, list):
        parts = [f"[{m.get('role')}] {m.get('content')}" if isinstance(m, dict) else str(m) for m in value]
        value = "\n".join(parts)
    text = redact_text(str(value if value is not None else "")) or "(empty)"
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


def _files(run: RunDir, events: Sequence[dict[str, Any]]) -> str:
    rows = [[escape(name), f"{size:,}", escape(what)] for name, size, what in files(run)]
    uploads = "".join(f"<p class='about break'>{escape(note)}</p>" for note in wandb_note(events))
    return _table(("file", "bytes", ""), rows[:200], 1, "narrow") + uploads
