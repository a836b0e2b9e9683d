"""What the report says of the run itself: when, where and with what it ran, and which files it left."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.runs.attempt_changes import changes_in_force, how_to_repeat
from rl_cli.runs.outcome import attempts_in_words, is_replay, seconds_taken
from rl_cli.runs.progress import Progress, number
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import duration
from rl_cli.runs.tracking_file import disagreements, in_words, read_tracking

DISTRIBUTIONS = ("torch", "trl", "transformers", "rl-flywheel")
WHAT_FILES_HOLD = {
    "run.yaml": "the resolved config",
    "state.json": "state, reason, evaluation",
    "events.jsonl": "what happened, in order",
    "metrics.jsonl": "figures of every step",
    "samples.jsonl": "rollouts to look at",
    "checks.json": "judgements that were due",
    "stop.json": "the request to stop",
}


FOLDERS = {
    "checkpoints": "weights, tokenizer, optimizer",
    "attempts": "what this attempt left when the run was resumed",
}
"""Folders of folders, each of which is one entry."""


def is_watched(summary: Mapping[str, Any]) -> bool:
    """Whether somebody else's run is followed in W&B: its environment and config are not known here."""
    return summary.get("backend") == "wandb"


def facts(
    run: RunDir,
    summary: dict[str, Any],
    state: dict[str, Any],
    events: Sequence[dict[str, Any]],
    progress: Progress,
) -> list[tuple[str, str]]:
    """(name, value) of what a reader needs to place the run and to repeat it, as plain text."""
    started, rows = str(summary["started"] or "")[:19].replace("T", " "), []
    if started:
        took = duration(seconds_taken(state))
        rows.append(("Started", f"{started} UTC; {'took' if summary['ended'] else 'so far'} {took}"))
    if attempts := attempts_in_words(run, state):
        rows.append(("Attempts", attempts))
    if is_watched(summary):
        return [*rows, ("Watched in W&B", str(summary.get("wandb_url") or run.id)), *_pace(progress)]
    tracking = read_tracking(run)
    if tracking:
        address = [str(tracking["url"])] if tracking.get("url") else []
        rows.append(("W&B", "; ".join([in_words(tracking), *disagreements(run), *address])))
    rows.append(("Host", str(state.get("host") or "unknown")))
    if not is_replay(summary):
        rows += [*_pace(progress), *_work(run, summary, progress), *_warm_start(events)]
        rows.append(("Versions, as installed when this page was written", _versions()))
    repeat = how_to_repeat(run, changes_in_force(run, events), summary["total_steps"])
    rows.append(("To repeat it", repeat))
    return rows


def _pace(progress: Progress) -> list[tuple[str, str]]:
    seconds = progress.grpo["seconds/step"].last(sys.maxsize)
    if not seconds:
        return []
    mean = math.fsum(seconds) / len(seconds)
    return [("Time per GRPO step", f"{mean:.3g} s, the mean of {len(seconds)}, without evaluations")]


def _work(run: RunDir, summary: dict[str, Any], progress: Progress) -> list[tuple[str, str]]:
    rows = []
    size = _setting(run, "grpo", "batch_size")
    if isinstance(size, int) and isinstance(summary["step"], int) and summary["step"]:
        count = size * summary["step"]
        rows.append(("Rollouts in training", f"{count:,} ({summary['step']} steps of {size})"))
    tokens = progress.grpo["tokens"].last(1)
    if tokens:
        rows.append(("Tokens sampled in training", f"{tokens[0]:,.0f}"))
    return rows


def _warm_start(events: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    event = next((e for e in events if e.get("kind") == "warm_start" and e.get("steps")), None)
    if event is None:
        return []
    parts = [f"{event['steps']} SFT steps"]
    gate = number(event, "gate")
    if gate is not None:
        parts.append(f"gate measure {gate:.3f} (share of validation tasks that some sample solves)")
    parts.append("taken from the cache" if event.get("source") == "cache" else "trained in this run")
    return [("Warm start", ", ".join(parts))]


def _setting(run: RunDir, section: str, name: str) -> Any:
    try:
        found = run.config_dict().get(section)
    except (RlCliError, OSError, ValueError):  # a run.yaml that is damaged or gone
        return None
    return found.get(name) if isinstance(found, dict) else None


def _versions() -> str:
    import platform

    known = [f"python {platform.python_version()}"]
    for name in DISTRIBUTIONS:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:  # an optional dependency
            known.append(f"{name} not installed")
    return ", ".join(known)


def files(run: RunDir) -> list[tuple[str, int, str]]:
    """(name, bytes, what it holds) of every file, a checkpoint's files together; not the report itself."""
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(run.path.rglob("*")):
        name = path.relative_to(run.path)
        if not path.is_file() or name.parts[0].startswith((".", "wandb")) or name.stem == "report":
            continue
        key, what = str(name), WHAT_FILES_HOLD.get(str(name), "")
        if name.parts[0] in FOLDERS and len(name.parts) > 2:
            key, what = f"{Path(*name.parts[:2])}/", FOLDERS[name.parts[0]]
            if name.parts[0] == "checkpoints" and not any((run.path / key).glob("*.safetensors")):
                what = "no weights"
        found[key] = (found.get(key, (0, ""))[0] + _size(path), what)
    return [(name, size, what) for name, (size, what) in found.items()]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it went meanwhile
        return 0
