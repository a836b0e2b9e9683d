"""What was changed when a run was resumed: which steps were trained with which values."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rl_cli.core.errors import RlCliError
from rl_cli.core.json_text import to_json
from rl_cli.runs.run_dir import RunDir

Values = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """A field of the config that has another value after a step."""

    field: str
    """Dotted."""
    old: Any
    new: Any
    step: int
    """The last step with the old value; 0: all of the run has the new one."""

    def in_words(self) -> str:
        where = f"after step {self.step}" if self.step else "from the beginning"
        return f"{self.field} {self.values()} {where}"

    def values(self) -> str:
        return f"{as_text(self.old)} -> {as_text(self.new)}"


def as_text(value: Any) -> str:
    """A value of a config."""
    return value if isinstance(value, str) else to_json(value)


def first_config(run: RunDir) -> Values:
    """{dotted field: value} of the first attempt: run.yaml as it is; {} if that cannot be read."""
    from rl_cli.config.fields import flatten
    from rl_cli.config.tree import RunConfig
    from rl_cli.config.yaml_text import read_yaml

    try:
        return flatten(RunConfig.model_validate(read_yaml(run.path / "run.yaml")))
    except (RlCliError, OSError, ValueError):
        return {}


def changes_by_attempt(first: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> list[list[Change]]:
    """What each resume changed, in order; an empty list for one that changed nothing.

    Args:
        first: See `first_config`.
        events: Of the run.
    """
    known, found = dict(first), []
    for event in events:
        if event.get("kind") != "resumed":
            continue
        given, step = event.get("changes"), event.get("step")
        new = dict(given) if isinstance(given, dict) else {}
        at = step if isinstance(step, int) else 0
        changed = {field: value for field, value in new.items() if known.get(field) != value}
        found.append([Change(field, known.get(field), value, at) for field, value in changed.items()])
        known |= changed
    return found


def changes_in_force(run: RunDir, events: Sequence[Mapping[str, Any]] | None = None) -> list[Change]:
    """The changes that the steps of the run have seen, in their order: what was trained anew is left out."""
    told = run.events() if events is None else events
    resumed = [event for event in told if event.get("kind") == "resumed"]
    if not any(event.get("changes") for event in resumed):
        return []
    first = first_config(run)
    attempts = changes_by_attempt(first, told)
    values = {change.field: [(-1, change.old)] for changes in reversed(attempts) for change in changes}
    for event, changes in zip(resumed, attempts, strict=True):
        new = {change.field: change.new for change in changes}
        step = event.get("step")
        at = step if isinstance(step, int) else 0
        for field, before in values.items():
            newest = new.get(field, before[-1][1])
            kept = [(since, value) for since, value in before if since < at]
            values[field] = kept if kept[-1][1] == newest else [*kept, (at, newest)]
    found = [
        Change(field, old, new, at)
        for field, before in values.items()
        for (_, old), (at, new) in pairwise(before)
    ]
    return sorted(found, key=lambda change: change.step)


def how_to_repeat(run: RunDir, changes: Sequence[Change], total: Any) -> str:
    """The commands that train the same again.

    Args:
        run: The run.
        changes: See `changes_in_force`.
        total: Its last step.
    """
    at_start = {one.field: one.new for one in changes if not one.step}
    later = sorted({one.step for one in changes if one.step})
    if later:
        at_start["grpo.steps"] = later[0]
    config = shlex.quote(str(run.path / "run.yaml"))
    lines = [f"rl-cli runs start --config {config}{_sets(at_start)}"]
    for step, until in pairwise([*later, total]):
        sets = {one.field: one.new for one in changes if one.step == step}
        lines.append(f"rl-cli runs resume latest{_sets({**sets, 'grpo.steps': until})}")
    return "; when that is finished: ".join(lines)


def _sets(values: Mapping[str, Any]) -> str:
    return "".join(f" --set {shlex.quote(f'{name}={as_text(value)}')}" for name, value in values.items())
