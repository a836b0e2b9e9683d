"""How long earlier runs, or inference tests, took: the warm start, the steps, the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rl_cli.config.warm_start import STARTING
from rl_cli.core.files import read_json, read_jsonl

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

T = TypeVar("T")
LOOK_BACK = 200
"""Runs, or tests, that are looked through, newest first."""
ENOUGH = 5
"""Of one kind, that the median is taken of."""


@dataclass(frozen=True)
class EarlierRun:
    """A run that finished. Times are in seconds."""

    steps: int
    took: float
    """All of it but its warm start."""
    per_step: float | None
    """Of `took`, with validations and checkpoints; None: cannot be told."""
    warm_start: float
    """That it trained itself; 0: it took it from the cache, or has none."""

    def took_for(self, steps: int) -> float:
        """What so many steps would have taken: what comes before and after them does not grow with them."""
        if self.per_step is None:
            return self.took * steps / self.steps
        return max(0.0, self.took - self.per_step * self.steps) + self.per_step * steps


@dataclass(frozen=True)
class EarlierTest:
    rollouts: int
    took: float
    """Seconds; all of it but the warm start."""
    warm_start: float
    """Seconds; 0: it was not trained in the test."""


def earlier_runs(config: RunConfig, home: str | Path, steps: int | None = None) -> list[EarlierRun]:
    """The newest runs of this kind that finished; only those of so many steps if `steps` is given."""
    kind = {"environment": config.environment.name, "profile": config.profile}
    kind |= {"backend": config.backend.name, "model": config.model.name, "state": "finished"}

    def look(folder: Path, state: dict[str, Any]) -> EarlierRun | None:
        made, took = state.get("step") or state.get("total_steps"), _between(state, "started", "ended")
        if any(state.get(name) != value for name, value in kind.items()) or not took:
            return None
        if (state.get("attempt") or 1) > 1:  # of a resumed run `took` is its last part
            return None
        if not isinstance(made, int) or made <= 0 or (steps is not None and made != steps):
            return None
        warm_start = _built_in(folder)
        return EarlierRun(made, max(0.0, took - warm_start), _per_step(folder), warm_start)

    return _newest(Path(home) / "runs", "*/state.json", look)


def earlier_tests(config: RunConfig, home: str | Path, starting: bool) -> list[EarlierTest]:
    """The newest inference tests of this kind: with the starting checkpoint among the models, or without."""
    kind = (config.profile, config.environment.name, starting)

    def look(folder: Path, test: dict[str, Any]) -> EarlierTest | None:
        request, took = test["request"], test.get("seconds")
        earlier, models = request["config"], request.get("models") or [STARTING]
        done = sum(int(result["rollouts"]) for result in test["results"])
        if (earlier["profile"], earlier["environment"]["name"], STARTING in models) != kind:
            return None
        warm_start = float(test.get("warm_start_seconds") or 0.0)
        return EarlierTest(done, max(0.0, float(took) - warm_start), warm_start) if done and took else None

    return _newest(Path(home) / "inference_tests", "*.json", look)


def _newest(folder: Path, pattern: str, look: Callable[[Path, dict[str, Any]], T | None]) -> list[T]:
    """What `look` makes of a folder's JSON objects, newest name first; what it cannot read is left out."""
    found: list[T] = []
    for path in sorted(folder.glob(pattern), reverse=True)[:LOOK_BACK]:
        try:
            seen = look(path.parent, read_json(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        found += [] if seen is None else [seen]
        if len(found) == ENOUGH:
            break
    return found


def _built_in(folder: Path) -> float:
    """Seconds for which a run trained its warm start."""
    began = None
    for event in _rows(folder / "events.jsonl"):
        if event.get("kind") == "phase" and event.get("name") == "sft":
            began = event
        elif event.get("kind") == "warm_start":
            built = began is not None and event.get("source") != "cache"
            return (_between({"from": began, "to": event}, "from", "to") or 0.0) if built else 0.0
    return 0.0


def _per_step(folder: Path) -> float | None:
    """From the times at which its steps were written."""
    rows = [row for row in _rows(folder / "metrics.jsonl") if row.get("phase") == "grpo"]
    if len(rows) < 2:
        return None
    first, last = rows[0], rows[-1]
    passed = _between({"from": first, "to": last}, "from", "to")
    try:
        return None if passed is None else passed / (last["step"] - first["step"])
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return read_jsonl(path) if path.exists() else iter(())


def _between(record: dict[str, Any], first: str, last: str) -> float | None:
    """Seconds between two times of a record, which are texts or rows with a `time`."""
    try:
        began, ended = (
            datetime.fromisoformat(value["time"] if isinstance(value, dict) else value)
            for value in (record[first], record[last])
        )
        return (ended - began).total_seconds()
    except (KeyError, TypeError, ValueError):
        return None
