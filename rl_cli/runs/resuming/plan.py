"""From which checkpoint a run can go on, with which changes, and what is left of its budget."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl_cli.core.errors import BadUsage, Refused
from rl_cli.core.files import read_jsonl
from rl_cli.core.settings import load_settings
from rl_cli.runs.attempts import with_changes
from rl_cli.runs.checkpoints import all_checkpoints
from rl_cli.runs.outcome import what_is_lost
from rl_cli.runs.progress import progress_of
from rl_cli.runs.retention import first_not_finite, grpo_rows
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State, attempt_seconds, is_over
from rl_cli.spending.limits import Limits
from rl_cli.spending.rates import longest, with_run_budget

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig
    from rl_cli.spending.rates import Rate

MAY_CHANGE = (
    "grpo.steps",
    "grpo.learning_rate",
    "grpo.temperature",
    "grpo.kl_beta",
    "grpo.clip_epsilon",
    "grpo.checkpoint_every",
    "grpo.keep_last",
    "grpo.keep_every",
    "evaluation",
    "tracking",
    "health",
    "budget",
)
"""Fields, and sections, that a run may change in the middle."""
WHY_NOT = {
    "environment": "it decides the tasks and their order",
    "seed": "it decides the order of the tasks and every draw",
    "backend": "the checkpoints are those of the backend that wrote them",
    "profile": "it is what the config started from",
    "model": "the checkpoint is that of another model then",
    "sft": "the warm start is over",
    "grpo.batch_size": "it decides which tasks each step takes",
    "grpo.group_size": "it decides which tasks each step takes",
}
OTHERWISE = "it would change what the steps so far were made with"


@dataclass(frozen=True)
class Plan:
    """What a resume is going to do."""

    attempt: int
    step: int
    checkpoint: Path | None
    changes: dict[str, Any]
    """Of all resumes so far, with the new ones."""
    seconds_before: float
    """That all attempts so far ran."""
    notes: list[str] = field(default_factory=list)

    def keeps(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of figures or a sample is from before the place where the run goes on."""
        if self.checkpoint is None:
            return False
        step = row.get("step")
        return row.get("phase") == "sft" or (isinstance(step, int) and step <= self.step)

    def rest_of(self, config: RunConfig, rate: Rate) -> RunConfig:
        """The config as one of the steps that are left, with the budget that is left.

        Raises:
            Refused: There is none.
        """
        hours, budget = self.seconds_before / 3600, config.budget
        taken = {"max_hours": hours, "max_gpu_hours": rate.gpus * hours}
        taken["max_dollars"] = rate.gpus * hours * (rate.gpu_hour or 0.0)
        left = {}
        for name, took in taken.items():
            limit = getattr(budget, name)
            if limit is not None and limit <= took:
                raise Refused(
                    f"the run has used up budget.{name}, {limit:g}", f"--set budget.{name}=NUMBER allows more"
                )
            left[name] = None if limit is None else limit - took
        if budget.deadline is not None and longest(config, rate) == 0:
            raise Refused(
                f"budget.deadline {budget.deadline} has passed", "--set budget.deadline=TIME, or null"
            )
        steps = max(1, config.grpo.steps - self.step)
        return config.model_copy(
            update={
                "budget": budget.model_copy(update=left),
                "grpo": config.grpo.model_copy(update={"steps": steps}),
            }
        )


def make_plan(run: RunDir, state: State, changes: Mapping[str, Any]) -> tuple[Plan, RunConfig]:
    """What a resume would do, and the config that the run has then.

    Args:
        run: The run.
        state: Its state, as whoever holds its lock reads it.
        changes: Dotted field -> value.

    Raises:
        BadUsage: It cannot be resumed, or cannot be changed like that.
    """
    if not is_over(state):
        raise goes_on(run, state)
    if state.get("damaged"):
        raise BadUsage(f"{run.id} cannot be resumed: {state['reason']}")
    if state.get("backend") not in ("trl", "replay"):
        raise BadUsage(f"{run.id} was not started here, so it cannot be resumed here")
    attempt = state.get("attempt") or 1
    before = _changes_of(run, attempt)
    config, bounded = changed(run, before, changes)
    checkpoint, notes = last_good(run)
    step = checkpoint[0] if checkpoint else 0
    if "grpo.steps" in bounded and config.grpo.steps < step:
        raise BadUsage(
            f"grpo.steps {config.grpo.steps} is less than the {step} steps that are done",
            f"at least {step}",
        )
    _must_have_work(run, state, config, bounded)
    if "grpo.steps" in bounded and config.backend.name == "replay":
        raise BadUsage(f"grpo.steps of {run.id} cannot change: a replay has the steps of its file")
    broken = first_not_finite(run)
    if broken < math.inf and not changes:
        notes.append(
            f"the figures of step {broken:.0f} were no numbers, and with nothing changed they may be again: "
            "--set grpo.learning_rate=LOWER"
        )
    if checkpoint and config.backend.name != "replay" and (lost := what_is_lost(progress_of(run), step)):
        again = f"rl-cli runs start --config {shlex.quote(str(run.path / 'run.yaml'))}"
        notes.append(f"{lost}; better begin again: {again} --set grpo.learning_rate=LOWER")
    took = attempt_seconds(state) if state.get("processes") else 0.0
    seconds = (state.get("seconds_before") or 0.0) + max(0.0, took or 0.0)
    path = checkpoint[1] if checkpoint else None
    return Plan(attempt + 1, step, path, {**before, **bounded}, round(seconds, 3), notes), config


def goes_on(run: RunDir, state: State) -> BadUsage:
    return BadUsage(f"{run.id} goes on already: it is {state['state']}", f"rl-cli runs watch {run.id}")


def last_good(run: RunDir) -> tuple[tuple[int, Path] | None, list[str]]:
    """((step, folder) of the newest checkpoint that a run can go on from, or None; why newer ones cannot).

    Good is one that is whole, was written before the first step with a figure that is not finite, and whose
    steps are all in metrics.jsonl.
    """
    broken, newest = first_not_finite(run), _newest_step(run)
    notes: list[str] = []
    for one in reversed(all_checkpoints(run.path)):
        if one.step >= broken:
            problem: str | None = f"the figures of step {broken:.0f} are no numbers"
        elif one.step > newest:
            problem = f"metrics.jsonl ends at step {newest}"
        else:
            problem = one.damage()
        if problem is None:
            return (one.step, one.path), notes
        notes.append(f"the checkpoint of step {one.step} cannot be used: {problem}")
    return None, notes


def changed(
    run: RunDir, before: Mapping[str, Any], changes: Mapping[str, Any]
) -> tuple[RunConfig, dict[str, Any]]:
    """The run's config with the changes, bounded by the settings' budget; and every field that is new in it.

    Args:
        run: The run.
        before: What earlier resumes changed.
        changes: Dotted field -> value.

    Raises:
        BadUsage: A field may not change in the middle of a run, or a value is wrong.
    """
    from rl_cli.config.edit import edit
    from rl_cli.config.fields import flatten, spread
    from rl_cli.config.tree import RunConfig
    from rl_cli.config.yaml_text import read_yaml

    try:
        start = RunConfig.model_validate(with_changes(read_yaml(run.path / "run.yaml"), before))
    except ValueError as error:
        raise BadUsage(f"the run.yaml of {run.id} cannot be used: {error}") from None
    was, wanted = flatten(start), spread(dict(changes))
    problems = [why for name, value in wanted.items() if was.get(name) != value and (why := _refusal(name))]
    if problems:
        file = shlex.quote(str(run.path / "run.yaml"))
        hint = f"start a new run for that: rl-cli runs start --config {file} --set FIELD=VALUE"
        raise BadUsage("; ".join(problems), hint)
    config = edit(start, wanted) if wanted else start
    config = with_run_budget(config, Limits.from_settings(load_settings()))
    return config, {name: value for name, value in flatten(config).items() if was.get(name) != value}


def _refusal(name: str) -> str | None:
    """Why a field may not change; None where it may, or where there is no such field."""
    from rl_cli.config.fields import FIELDS, SECTIONS

    known = name in FIELDS or name in SECTIONS or name.startswith("environment.options.")
    parts = name.split(".")
    heads = [".".join(parts[: i + 1]) for i in range(len(parts))]
    if not known or any(head in MAY_CHANGE for head in heads):
        return None
    why = next((WHY_NOT[head] for head in heads if head in WHY_NOT), OTHERWISE)
    return f"{name} cannot change in the middle of a run: {why}"


def _must_have_work(run: RunDir, state: State, config: RunConfig, changes: Mapping[str, Any]) -> None:
    if state["state"] != "finished":
        return
    if state.get("rule"):
        if not any(name.startswith("health.") for name in changes):
            raise BadUsage(
                f"{run.id} is finished: {state['reason']}",
                "--set health.target_accuracy=null, or health.plateau_patience=null, goes on past that",
            )
    elif state["backend"] == "replay":
        raise BadUsage(f"{run.id} is a replay that was played to its end: there is no more to play")
    elif (done := _newest_step(run)) >= config.grpo.steps:
        raise BadUsage(
            f"{run.id} is finished: all {done} steps are done", f"--set grpo.steps=NUMBER, above {done}"
        )


def _changes_of(run: RunDir, attempt: int) -> dict[str, Any]:
    """What was changed up to an attempt, from the event that tells of it."""
    events = [e for e in read_jsonl(run.path / "events.jsonl") if e.get("kind") == "resumed"]
    of_it = [event.get("changes") for event in events if event.get("attempt") == attempt]
    return dict(of_it[-1]) if of_it and isinstance(of_it[-1], dict) else {}


def _newest_step(run: RunDir) -> int:
    return max((step for step, _ in grpo_rows(run)), default=0)
