"""What a run has come to, in figures and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State
from rl_cli.runs.times import duration, since

WHICH = ("untrained", "initial", "best", "final")


def gain(evaluation: dict[str, Any]) -> float | None:
    """Test accuracy of `final` minus `initial`: what GRPO added. None if one of them is missing."""
    first, last = evaluation.get("initial"), evaluation.get("final")
    return None if first is None or last is None else round(last - first, 6)


def interval(accuracy: float, n: int) -> tuple[float, float]:
    """95 % interval of a share that was measured on n independent problems (Wilson 1927)."""
    z = 1.96
    middle = (accuracy + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(accuracy * (1 - accuracy) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def sentence(summary: dict[str, Any]) -> str:
    """The outcome in one sentence.

    Args:
        summary: As RunDir.summary() returns it.
    """
    state, evaluation = summary["state"], summary["eval"]
    where = f"step {summary['step']} of {summary['total_steps']}"
    took = duration(since(summary["started"], summary["ended"]))
    change = gain(evaluation)
    reached = ""
    if change is not None:
        reached = (
            f"Test accuracy went from {evaluation['initial']:.4f} to {evaluation['final']:.4f} "
            f"({change:+.4f}) on {evaluation['n']} problems"
        )
    reason = summary["reason"] or "no reason given"
    if is_replay(summary):
        return _replayed(summary, where, took)
    if state == "finished":
        return f"{reached or 'Finished without a final evaluation'} in {summary['step']} GRPO steps, {took}."
    if state in ("stopped", "failed", "lost"):
        return f"{state.capitalize()} at {where} after {took}: {reason}." + (
            f" {reached}." if reached else ""
        )
    return f"Still {state}, at {where} after {took}."


def is_replay(summary: Mapping[str, Any]) -> bool:
    """Whether a run was played from a file; takes a summary or a state."""
    return summary.get("backend") == "replay"


def _replayed(summary: dict[str, Any], where: str, took: str) -> str:
    evaluation, change = summary["eval"], gain(summary["eval"])
    line = f"Replay, nothing was trained: {summary['state']} at {where} after {took}"
    if summary["state"] in ("stopped", "failed", "lost"):
        line += f": {summary['reason'] or 'no reason given'}"
    if change is None:
        return f"{line}."
    first, last = evaluation["initial"], evaluation["final"]
    return f"{line}. Its file plays a test accuracy of {first:.4f}, then {last:.4f}."


def notes(run: RunDir, state: State, events: Sequence[dict[str, Any]]) -> list[str]:
    """What a reader must know to read the figures right."""
    found = []
    if is_replay(state):
        found.append("This run was played from a file: nothing was trained, and no figure here was measured.")
    for event in events:
        if event.get("kind") == "warm_start" and event.get("note"):
            change = None if is_replay(state) else gain({**(state.get("eval") or {})})
            added = f" What GRPO added to it: {change:+.4f} test accuracy." if change is not None else ""
            found.append(f"{str(event['note']).rstrip('.')}.{added}")
            break
    errors = sum(int(row.get("rollouts/errors") or 0) for row in run.metrics() if _is_count(row))
    if errors:
        found.append(f"{errors} rollouts failed for reasons of infrastructure; they carried no weight.")
    wandb = [event for event in events if event.get("kind") == "wandb"]
    if wandb and wandb[-1].get("mode") == "offline":
        found.append(f"W&B is offline; `wandb sync {wandb[-1].get('dir')}` uploads it.")
    return found


def _is_count(row: dict[str, Any]) -> bool:
    return isinstance(row.get("rollouts/errors"), int | float)


def best_checkpoint(run: RunDir, events: Sequence[dict[str, Any]]) -> Path | None:
    """The folder of the checkpoint to use: that of the `best` evaluation, else the newest that exists."""
    folders = {}
    for event in events:
        if event.get("kind") == "checkpoint":  # by its name: the run may have been copied
            folder = run.path / "checkpoints" / Path(str(event.get("path"))).name
            if folder.is_dir():
                folders[event.get("step")] = folder
    chosen = [e.get("step") for e in events if e.get("kind") == "evaluation" and e.get("which") == "best"]
    if chosen and chosen[-1] in folders:
        return folders[chosen[-1]]
    return list(folders.values())[-1] if folders else None


def pick_samples(samples: list[dict[str, Any]], count: int = 3) -> list[dict[str, Any]]:
    """The first, the last and evenly spaced ones between."""
    if len(samples) <= count:
        return samples
    return [samples[round(i * (len(samples) - 1) / (count - 1))] for i in range(count)]


def text_summary(run: RunDir) -> str:
    """The short report: a few lines of text, without the path of the long one."""
    summary, events = run.summary(), run.events()
    evaluation = summary["eval"]
    what = [summary["environment"], f"profile {summary['profile']}", f"backend {summary['backend']}"]
    lines = [
        f"{summary['id']}: {summary['state']}",
        ", ".join([*map(str, what), f"model {summary['model']}"]),
        sentence(summary),
    ]
    measured = [f"{which} {evaluation[which]:.4f}" for which in WHICH if evaluation[which] is not None]
    if measured:
        what_kind = "accuracy in the file" if is_replay(summary) else "test accuracy"
        lines.append(f"{what_kind} (n = {evaluation['n']}): " + ", ".join(measured))
    lines += [f"note: {note}" for note in notes(run, run.state(), events)]
    lines += [f"alert: {alert['message']} -> {alert['action']}" for alert in summary["alerts"][-5:]]
    if checkpoint := best_checkpoint(run, events):
        lines.append(f"checkpoint: {checkpoint}")
    return "\n".join(lines)
