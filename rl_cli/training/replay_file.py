"""The YAML file that the replay backend plays: reading it, refusing what makes no sense with its line.

See `replay_worker` for what may be in one.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl_cli.core.errors import BadUsage, did_you_mean

COPY = "replay.yaml"
"""The play as it was when the run was made, in the run's directory."""
BUNDLED = Path(__file__).with_name("replays")
PHASES = ("loading", "sft", "evaluation", "grpo", "saving")
KEYS = ("play", "on_stop", "total_steps", "helpers")
PROCESSES = ("trainer", "supervisor", "recorder", "uploader", "wandb")
"""Names of a run's other processes, and of their logs."""
EVALUATIONS = ("untrained", "initial", "validation", "best", "final")


@dataclass(frozen=True)
class Entry:
    """One thing to play."""

    kind: str
    value: Any
    line: int
    extra: dict[str, Any] = field(default_factory=dict)
    """The other keys of the entry: the figures of a `step`."""


@dataclass(frozen=True)
class Play:
    entries: list[Entry]
    on_stop: list[Entry]
    """Played when the run is asked to stop."""
    total_steps: int | None
    helpers: dict[str, list[Entry]] = field(default_factory=dict)
    """Processes beside the trainer -> what each plays."""

    @property
    def steps(self) -> int | None:
        """GRPO steps that are planned: total_steps, or the last one of the play; None where it has none."""
        if self.total_steps:
            return self.total_steps
        last, newest, phase = 0, 0, "grpo"
        for entry in self.entries:
            if entry.kind == "step":
                last, phase = entry.value, entry.extra.get("phase", "grpo")
            elif entry.kind == "repeat":
                last = entry.value.get("step_from", 1) + entry.value["count"] - 1
                phase = entry.value.get("phase", "grpo")
            elif entry.kind == "nan":
                last += 1
            else:
                continue
            newest = max(newest, last) if phase == "grpo" else newest
        return newest or None


def find_file(name: str) -> Path:
    """The file that is meant: a path, or the name of a bundled one (`demo`, `nan`, `crash`, `stall`).

    Raises:
        BadUsage: There is none.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return path.absolute()
    bundled = BUNDLED / f"{path.stem}.yaml"
    if len(path.parts) == 1 and path.suffix in ("", ".yaml") and bundled.is_file():
        return bundled
    known = sorted(p.stem for p in BUNDLED.glob("*.yaml"))
    raise BadUsage(f"there is no replay file {name!r}", f"a path, or one of ours: {', '.join(known)}")


def read_play(path: Path) -> Play:
    """Reads and checks a file.

    Raises:
        BadUsage: With the path and the line of the first mistake.
    """
    import yaml

    from rl_cli.config.yaml_text import parse_yaml

    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadUsage(f"cannot read the replay file {path}: {error}") from error
    content = parse_yaml(text, str(path))
    root = yaml.compose(text, yaml.SafeLoader)
    if isinstance(content, list):
        return Play(_entries(path, content, root), [], None)
    if not isinstance(content, dict) or "play" not in content:
        raise BadUsage(f"{path}:1: a replay file is a list of entries, or a mapping with the list in 'play'")
    nodes = (
        {key.value: (key, value) for key, value in root.value} if isinstance(root, yaml.MappingNode) else {}
    )
    for name in content:
        if name not in KEYS:
            line = nodes[name][0].start_mark.line + 1
            hint = did_you_mean(str(name), KEYS)
            raise BadUsage(f"{path}:{line}: unknown key {name!r}", hint)
    total = content.get("total_steps")
    if total is not None and not _is_int(total, 1):
        raise BadUsage(f"{path}:{nodes['total_steps'][0].start_mark.line + 1}: total_steps must be a count")
    on_stop = _entries(path, content["on_stop"], nodes["on_stop"][1]) if content.get("on_stop") else []
    helpers = _helpers(path, content["helpers"], nodes["helpers"][1]) if content.get("helpers") else {}
    return Play(_entries(path, content["play"], nodes["play"][1]), on_stop, total, helpers)


def _helpers(path: Path, content: Any, node: Any) -> dict[str, list[Entry]]:
    line = node.start_mark.line + 1
    if not isinstance(content, dict):
        raise BadUsage(f"{path}:{line}: helpers maps names to lists of entries")
    for name in content:
        if not re.fullmatch(r"[a-z][a-z0-9_]*", str(name)) or name in PROCESSES:
            raise BadUsage(f"{path}:{line}: {name!r} cannot be the name of a helper process")
    return {key.value: _entries(path, content[key.value], value) for key, value in node.value}


def _entries(path: Path, content: Any, node: Any) -> list[Entry]:
    start = node.start_mark.line + 1
    if not isinstance(content, list) or not content:
        raise BadUsage(f"{path}:{start}: expected a list of entries, such as '- step: 1'")
    lines = [item.start_mark.line + 1 for item in node.value]
    return [_entry(path, line, item) for line, item in zip(lines, content, strict=True)]


def _entry(path: Path, line: int, item: Any) -> Entry:
    where = f"{path}:{line}"
    if not isinstance(item, dict) or not item:
        raise BadUsage(f"{where}: an entry is a mapping such as 'step: 1', not {item!r}")
    kind = next(iter(item))
    if kind not in CHECKS:
        raise BadUsage(f"{where}: unknown entry {kind!r}", did_you_mean(str(kind), tuple(CHECKS)))
    extra = {name: value for name, value in item.items() if name != kind}
    if extra and kind != "step":
        raise BadUsage(f"{where}: an entry {kind!r} has no {next(iter(extra))!r} beside it")
    problem = CHECKS[kind](item[kind], extra)
    if problem:
        raise BadUsage(f"{where}: {kind}: {problem}")
    return Entry(kind, item[kind], line, extra)


def _is_int(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _step(value: Any, extra: dict[str, Any]) -> str | None:
    if not _is_int(value, 0):
        return f"the number of the step, not {value!r}"
    if extra.get("phase", "grpo") not in ("sft", "grpo"):
        return f"phase is sft or grpo, not {extra['phase']!r}"
    wrong = [n for n, v in extra.items() if n != "phase" and not _is_number(v)]
    return f"{wrong[0]} must be a number, not {extra[wrong[0]]!r}" if wrong else None


def _repeat(value: Any, _: dict[str, Any]) -> str | None:
    known = ("count", "step_from", "every", "phase", "noise", "values")
    if not isinstance(value, dict) or not _is_int(value.get("count"), 1):
        return "needs a count, and values"
    for name in value:
        if name not in known:
            return f"unknown key {name!r}; {did_you_mean(str(name), known)}"
    if not _is_int(value.get("step_from", 1), 0):
        return "step_from is the number of the first step"
    if value.get("phase", "grpo") not in ("sft", "grpo"):
        return f"phase is sft or grpo, not {value['phase']!r}"
    if not all(_is_number(value.get(n, 0)) and value.get(n, 0) >= 0 for n in ("every", "noise")):
        return "every (seconds) and noise (share) are numbers from 0"
    values = value.get("values")
    if not isinstance(values, dict) or not values:
        return "values maps figures to a number, or to [first, last]"
    for name, ramp in values.items():
        ends = ramp if isinstance(ramp, list) else [ramp, ramp]
        if len(ends) != 2 or not all(map(_is_number, ends)):
            return f"{name} must be a number, or [first, last], not {ramp!r}"
    return None


def _evaluation(value: Any, _: dict[str, Any]) -> str | None:
    if not isinstance(value, dict) or value.get("which") not in EVALUATIONS:
        return f"which must be one of {', '.join(EVALUATIONS)}"
    if not _is_number(value.get("accuracy")) or not 0 <= value["accuracy"] <= 1:
        return "accuracy must be between 0 and 1"
    return None if _is_int(value.get("n", 1), 1) else "n must be a count"


def _signal(value: Any, _: dict[str, Any]) -> str | None:
    return None if value in [s.value for s in signal.Signals] else f"no signal {value!r}"


def _one_of(*known: Any) -> Callable[[Any, dict[str, Any]], str | None]:
    def check(value: Any, _: dict[str, Any]) -> str | None:
        hit = any(value == k and type(value) is type(k) for k in known)
        return None if hit else f"one of {', '.join(str(k).lower() for k in known)}, not {value!r}"

    return check


def _a(what: str, is_right: Callable[[Any], bool]) -> Callable[[Any, dict[str, Any]], str | None]:
    return lambda value, _: None if is_right(value) else f"{what}, not {value!r}"


_text = _a("a text", lambda v: isinstance(v, str))
_seconds = _a("seconds", lambda v: _is_number(v) and v >= 0)
_mapping = _a("a mapping", lambda v: isinstance(v, dict))

CHECKS: dict[str, Callable[[Any, dict[str, Any]], str | None]] = {
    "phase": _one_of(*PHASES),
    "ready": _one_of(True),
    "step": _step,
    "repeat": _repeat,
    "delay": _seconds,
    "evaluation": _evaluation,
    "sample": _mapping,
    "checkpoint": _a("the number of the step", lambda v: _is_int(v, 0)),
    "warm_start": _mapping,
    "log": _text,
    "nan": _text,
    "stall": _one_of(True, "deaf"),
    "child": _seconds,
    "setsid": _seconds,
    "listen": _one_of(True),
    "fail": _text,
    "crash": _text,
    "exit": _a("an exit code", lambda v: _is_int(v, 0) and v < 256),
    "kill": _signal,
}
"""Kind of entry -> what is wrong with its value and the keys beside it, or None."""
