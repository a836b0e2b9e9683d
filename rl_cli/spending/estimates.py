"""How long a run or an inference test will take and what it will cost, from earlier ones of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rl_cli.config.profiles import load_profile
from rl_cli.core.files import read_json
from rl_cli.spending.rates import Rate, longest
from tools.spec import Estimate

if TYPE_CHECKING:
    from rl_cli.config.tree import RunConfig

LOOK_BACK = 200
"""Runs, or tests, that are looked through, newest first."""
ENOUGH = 5
"""Of one kind, that the median is taken of."""


def estimate_run(config: RunConfig, home: str | Path, rate: Rate) -> Estimate:
    """What a run will take. Its own budget bounds what is known from earlier runs, or stands in for it."""
    seconds, basis = run_seconds(config, home)
    bound = longest(config, rate)
    if bound is not None and (seconds is None or bound < seconds):
        seconds, basis = bound, "at most: the run's budget ends it then"
    return _estimate(seconds, basis, rate)


def estimate_test(
    config: RunConfig, home: str | Path, rate: Rate, rollouts: int, dollars: float | None = 0.0
) -> Estimate:
    """What an inference test will take.

    Args:
        rollouts: Over all tasks and models.
        dollars: What the models that cost money may take at most; None: it cannot be told.
    """
    times = []
    for test in _newest(Path(home) / "inference_tests", "*.json"):
        request = test.get("request") or {}
        earlier, results = request.get("config") or {}, test.get("results") or []
        done = sum(int(result.get("rollouts") or 0) for result in results)
        same = (earlier.get("profile"), (earlier.get("environment") or {}).get("name"))
        if same == (config.profile, config.environment.name) and done and test.get("seconds"):
            times.append(float(test["seconds"]) * max(1.0, rollouts / done))  # loading does not shrink
        if len(times) == ENOUGH:
            break
    found = _estimate(median(times) if times else None, _how_many(len(times), "test"), rate)
    both = None if dollars is None or found.dollars is None else dollars + found.dollars
    return Estimate(found.where, found.seconds, found.gpu_hours, both, found.basis)


def run_seconds(config: RunConfig, home: str | Path) -> tuple[float | None, str]:
    """(seconds of the whole run, what that rests on); runs of other lengths are scaled by their steps."""
    kind = {"environment": config.environment.name, "profile": config.profile}
    kind |= {"backend": config.backend.name, "model": config.model.name, "state": "finished"}
    same, scaled = [], []
    for state in _newest(Path(home) / "runs", "*/state.json"):
        steps, took = state.get("total_steps"), _seconds(state)
        if any(state.get(name) != value for name, value in kind.items()) or not took or not steps:
            continue
        if steps == config.grpo.steps:
            same.append(took)
        else:
            scaled.append(took * config.grpo.steps / steps)
        if len(same) == ENOUGH:
            break
    if same:
        return median(same), _how_many(len(same), "run")
    if scaled:
        return median(scaled[:ENOUGH]), f"{_how_many(len(scaled[:ENOUGH]), 'run')}, scaled by their steps"
    return _usual_seconds(config)


def _usual_seconds(config: RunConfig) -> tuple[float | None, str]:
    pace = load_profile(config.profile).pace
    if pace is None or config.backend.name != "trl":
        return None, _how_many(0, "run")
    rollouts = config.grpo.steps * config.grpo.batch_size
    seconds = pace["start_seconds"] + rollouts / pace["rollouts_per_second"]
    return seconds, f"a usual machine for {config.profile}; {_how_many(0, 'run')}"


def _estimate(seconds: float | None, basis: str, rate: Rate) -> Estimate:
    where = "this computer" + (f" ({rate.gpus} GPU{'s' if rate.gpus > 1 else ''})" if rate.gpus else "")
    amounts = rate.amounts(seconds or 0.0)
    told = not rate.gpus or rate.gpu_hour == 0 or (rate.priced and seconds is not None)
    return Estimate(where, seconds, amounts.gpu_hours, amounts.dollars if told else None, basis)


def _how_many(count: int, what: str) -> str:
    if not count:
        return f"no earlier {what} of this kind"
    return f"{count} earlier {what}{'s' if count > 1 else ''} of this kind"


def _newest(folder: Path, pattern: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a folder, newest name first; what cannot be read is left out."""
    for path in sorted(folder.glob(pattern), reverse=True)[:LOOK_BACK]:
        try:
            content = read_json(path)
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            yield content


def _seconds(state: dict[str, Any]) -> float | None:
    try:
        started, ended = (datetime.fromisoformat(state[name]) for name in ("started", "ended"))
        return (ended - started).total_seconds()
    except (KeyError, TypeError, ValueError):
        return None
