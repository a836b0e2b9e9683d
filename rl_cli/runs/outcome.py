"""What a run has come to, in figures and sentences."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl_cli.core.cuts import one_line
from rl_cli.runs.alert_words import at_step
from rl_cli.runs.attempt_changes import changes_in_force
from rl_cli.runs.progress import Progress, number, progress_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State, attempt_seconds
from rl_cli.runs.times import duration
from rl_cli.runs.tracking_file import tracking_notes

WHICH = ("untrained", "initial", "best", "final")
LEVEL_STEPS = 3
LOST_SHARE, LOST_LEAST = 0.5, 0.1
"""A checkpoint that earns less than this share of the first reward, and by so much less, is no good one."""
RAN_OUT = ("budget", "deadline")
"""Health rules that end a run which could have gone on."""


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


def gain_interval(first: float, last: float, n: int) -> tuple[float, float]:
    """95 % interval of `last` - `first`, both measured on n problems (Newcombe 1998, method 10).

    It takes the two for independent: rather too wide than too narrow where they share their problems.
    """
    (low_1, high_1), (low_2, high_2) = interval(first, n), interval(last, n)
    below, above = math.hypot(last - low_2, high_1 - first), math.hypot(high_2 - last, first - low_1)
    return last - first - below, last - first + above


def rounded(value: float, digits: int) -> str:
    """Fixed digits, halves rounded up: 0.8525 is 0.853 in three."""
    return f"{round(value + 1e-9, digits):.{digits}f}"


def signed(value: float, digits: int) -> str:
    return ("+" if value >= 0 else "") + rounded(value, digits)


def signed_gain(first: float, last: float, digits: int) -> str:
    """The difference of two accuracies, rounded from the exact one: the same wherever it is shown."""
    return signed(last - first, digits)


def outcome_of(run: RunDir, digits: int = 4) -> str:
    """What has become of a run, in one sentence; the time is that of all its attempts."""
    return sentence(run.summary(), digits, seconds_taken(run.state()))


def seconds_taken(state: State) -> float | None:
    """Of all attempts together, without what lay between them; so far, where the run goes on."""
    lasted = attempt_seconds(state)
    before = float(state.get("seconds_before") or 0.0)
    return before + lasted if lasted is not None else before or None


def attempts_in_words(run: RunDir, state: State) -> str | None:
    """Which attempt this is, from where it goes on and what was changed; None at the first one."""
    number = state.get("attempt") or 1
    if number < 2:
        return None
    events = run.events()
    steps = [event.get("step") or 0 for event in events if event.get("kind") == "resumed"]
    where = [f"after step {step}" if step else "from the beginning" for step in steps]
    changed = [change.in_words() for change in changes_in_force(run, events)]
    told = f"{number}, resumed {', '.join(where)}" if where else str(number)
    return f"{told}; changed: {'; '.join(changed)}" if changed else f"{told}; nothing was changed"


def sentence(summary: dict[str, Any], digits: int = 4, seconds: float | None = None) -> str:
    """The outcome in one sentence.

    Args:
        summary: As RunDir.summary() returns it.
        digits: Of the accuracies, after the point.
        seconds: See `seconds_taken`.
    """
    state, evaluation = summary["state"], summary["eval"]
    where = f"step {summary['step']}" + (f" of {summary['total_steps']}" if summary["total_steps"] else "")
    took = duration(seconds)
    change = gain(evaluation)
    reached = ""
    if change is None and evaluation["final"] is not None:
        reached = (
            f"Test accuracy was {evaluation['final']:.4f} at the end on {evaluation['n']} problems "
            "(not measured at the start)"
        )
    if change is not None:
        first, last = evaluation["initial"], evaluation["final"]
        reached = (
            f"Test accuracy went from {rounded(first, digits)} to {rounded(last, digits)} "
            f"({signed_gain(first, last, digits)}) on {evaluation['n']} problems"
        )
    reason = summary["reason"] or "no reason given"
    if is_replay(summary):
        return _replayed(summary, where, took, digits)
    if state == "finished":
        return f"{reached or 'Finished without a final evaluation'} in {summary['step']} GRPO steps, {took}."
    if state in ("stopped", "failed", "lost"):
        return f"{state.capitalize()} at {where} after {took}: {reason}." + (
            f" {reached}." if reached else ""
        )
    return f"Still {state}, at {where} after {took}."


def about(summary: Mapping[str, Any]) -> list[str]:
    """What ran with what, as far as it is known: nobody knows the environment of a run that only W&B has."""
    named = (("", "environment"), ("profile ", "profile"), ("backend ", "backend"), ("model ", "model"))
    return [f"{what}{summary[name]}" for what, name in named if summary.get(name)]


def is_incomplete(state: Mapping[str, Any]) -> bool:
    """Whether a run did not do its work: failed, lost, or ended by budget or deadline before its last step.

    A stop that somebody asked for, or a target that was reached, is no lack.

    Args:
        state: As RunDir.state() returns it.
    """
    if state["state"] in ("failed", "lost"):
        return True
    cut_short = state["state"] == "stopped" and state.get("rule") in RAN_OUT
    return cut_short and (state.get("step") or 0) < (state.get("total_steps") or math.inf)


def did_its_work(state: Mapping[str, Any]) -> bool:
    """Whether a run finished, or was stopped when all its steps were done.

    Args:
        state: As RunDir.state() returns it.
    """
    done = (state.get("step") or 0) >= (state.get("total_steps") or math.inf)
    return state["state"] == "finished" or (state["state"] == "stopped" and done)


def is_replay(summary: Mapping[str, Any]) -> bool:
    """Whether a run was played from a file; takes a summary or a state."""
    return summary.get("backend") == "replay"


def _replayed(summary: dict[str, Any], where: str, took: str, digits: int) -> str:
    evaluation, change = summary["eval"], gain(summary["eval"])
    line = f"Replay, nothing was trained: {summary['state']} at {where} after {took}"
    if summary["state"] in ("stopped", "failed", "lost"):
        line += f": {summary['reason'] or 'no reason given'}"
    if change is None:
        return f"{line}."
    first, last = (rounded(evaluation[which], digits) for which in ("initial", "final"))
    return f"{line}. Its file plays a test accuracy of {first}, then {last}."


def notes(
    run: RunDir,
    state: State,
    events: Sequence[dict[str, Any]],
    digits: int = 4,
    progress: Progress | None = None,
) -> list[str]:
    """What a reader must know to read the figures right; `progress` is read anew where it is not given."""
    found: list[str] = []
    if is_replay(state):
        found.append("This run was played from a file: nothing was trained, and no figure here was measured.")
    for event in events:
        if event.get("kind") == "warm_start" and event.get("note"):
            known = {**(state.get("eval") or {})}
            added = ""
            change = None if is_replay(state) else gain(known)
            if change is not None:
                by = signed_gain(known["initial"], known["final"], digits)
                what = "What GRPO added to it" if change >= 0 else "GRPO made it worse"
                added = f" {what}: {by} test accuracy."
            found.append(f"{str(event['note']).rstrip('.')}.{added}")
            break
    figures = progress or progress_of(run)
    steps = [] if is_replay(state) else [one.step for one in checkpoints(run, events) if one.step is not None]
    if steps and (lost := what_is_lost(figures, max(steps))):
        found.append(f"{lost}.")
    errors = math.fsum(figures.grpo["rollouts/errors"].last(sys.maxsize))
    if errors:
        found.append(f"{errors:.0f} rollouts failed for reasons of infrastructure; they carried no weight.")
    return found


def what_is_lost(progress: Progress, step: int) -> str | None:
    """That the policy of a checkpoint earns far less than the first one did; None: not, or nobody knows.

    Args:
        progress: Of its run.
        step: The checkpoint's; the rewards of the steps after it are its own, where there are any.
    """
    rewards = progress.grpo["reward/mean"]
    own = [value for ahead in range(1, LEVEL_STEPS + 1) if (value := rewards.at(step + ahead)) is not None]
    first, last = rewards.first(1), [max(own)] if own else rewards.until(step, LEVEL_STEPS)
    if not first or not last:
        return None
    now = math.fsum(last) / len(last)
    if first[0] - now < LOST_LEAST or now > LOST_SHARE * first[0]:
        return None
    return (
        f"The reward fell from {first[0]:.3f} at the start to {now:.3f} at the checkpoint of step {step}: "
        "what was learned is lost there"
    )


@dataclass(frozen=True)
class Checkpoint:
    """A folder that can be loaded, and what is known of its model."""

    what: str
    """"best on validation", "last", both, or "played, without weights"."""
    step: int | None
    accuracy: float | None
    """On the test split; None if this very checkpoint was not evaluated."""
    path: Path

    def title(self) -> str:
        known = [] if self.step is None else [f"step {self.step}"]
        known += [] if self.accuracy is None else [f"test {self.accuracy:.4f}"]
        return f"{self.what} ({', '.join(known)})" if known else self.what


def checkpoints(run: RunDir, events: Sequence[dict[str, Any]]) -> list[Checkpoint]:
    """The checkpoint of the `best` evaluation, then the newest one; one entry if they are the same."""
    folders: dict[Any, Path] = {}
    for event in events:
        if event.get("kind") == "checkpoint":  # by its name: the run may have been copied
            folder = run.path / "checkpoints" / Path(str(event.get("path"))).name
            if folder.is_dir():
                folders[event.get("step")] = folder
    if not folders:
        return []
    best, last = evaluated(events, "best"), evaluated(events, "final")
    newest = list(folders)[-1]
    if is_replay(run.state()):
        step = best[0] if best[0] in folders else newest
        return [Checkpoint("played, without weights", step, None, folders[step])]
    accuracies = {step: figure for step, figure in (last, best) if step is not None}

    def entry(what: str, step: Any) -> Checkpoint:
        known = step if isinstance(step, int) else None
        return Checkpoint(what, known, accuracies.get(step), folders[step])

    if best[0] not in folders:
        return [entry("last", newest)]
    if best[0] == newest:
        return [entry("best on validation and last", newest)]
    return [entry("best on validation", best[0]), entry("last", newest)]


def evaluated(events: Sequence[dict[str, Any]], which: str) -> tuple[int | None, float | None]:
    """(step, accuracy) of the newest evaluation of that name; (None, None) if there is none."""
    for event in reversed(events):
        if event.get("kind") == "evaluation" and event.get("which") == which:
            step = event.get("step")
            return (step if isinstance(step, int) else None), number(event, "accuracy")
    return None, None


def is_right(sample: Mapping[str, Any]) -> bool | None:
    """Whether a sampled rollout was right: by the reward's part `correct`, else by a reward above 0."""
    parts = sample.get("parts")
    value = number(dict(parts), "correct") if isinstance(parts, dict) else None
    value = number(dict(sample), "reward") if value is None else value
    return None if value is None else value > 0


def pick_samples(samples: Sequence[dict[str, Any]], count: int = 3) -> list[dict[str, Any]]:
    """One right and one wrong rollout, as far as there are, of the first, the last and steps between."""
    by_step: dict[Any, list[dict[str, Any]]] = {}
    for sample in samples:
        by_step.setdefault(sample.get("step"), []).append(sample)
    picked = []
    for step in spread(list(by_step), count):
        found: dict[bool | None, dict[str, Any]] = {}
        for sample in by_step[step]:
            found.setdefault(is_right(sample), sample)
        picked += [found[right] for right in (True, False, None) if right in found]
    return picked


def spread(steps: Sequence[Any], count: int = 3) -> list[Any]:
    """At most `count` of the steps: the first, the last and some between."""
    if len(steps) <= count:
        return list(steps)
    return [steps[round(i * (len(steps) - 1) / (count - 1))] for i in range(count)]


def text_summary(run: RunDir) -> str:
    """The short report: a few lines of text, without the path of the long one."""
    summary, events = run.summary(), run.events()
    evaluation = summary["eval"]
    lines = [f"{summary['id']}: {summary['state']}", ", ".join(about(summary)), outcome_of(run)]
    attempts = attempts_in_words(run, run.state())
    lines += [f"attempts: {attempts}"] if attempts else []
    measured = [f"{which} {evaluation[which]:.4f}" for which in WHICH if evaluation[which] is not None]
    if measured:
        what_kind = "accuracy in the file" if is_replay(summary) else "test accuracy"
        lines.append(f"{what_kind} (n = {evaluation['n']}): " + ", ".join(measured))
    lines += [f"note: {note}" for note in [*notes(run, run.state(), events), *tracking_notes(run)]]
    lines += [
        one_line(f"alert{at_step(alert)}: {alert['message']} -> {alert['action']}", 1200)
        for alert in summary["alerts"][-5:]
    ]
    lines += [f"log: {line}" for line in (run.state().get("last_log_lines") or [])[-5:]]
    lines += [f"checkpoint, {found.title()}: {found.path}" for found in checkpoints(run, events)]
    return "\n".join(lines)
