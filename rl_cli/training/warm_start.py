"""The warm start of the tiny model: trained once per set of causes, kept under its hash, used by tests and
runs.

A warm start is a folder RL_CLI_HOME/warm_starts/<hash>/ with the model, its tokenizer, sft.jsonl (the
figures of its training) and warm_start.json (what decided it, steps, gate, and a checksum of every file).
It appears whole; one that no longer agrees with its checksums is built anew.
"""

from __future__ import annotations

import hashlib
import json
import math
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from environments.base import Environment, WarmStartSegment
from rl_cli.config.tree import RunConfig
from rl_cli.config.warm_start import FOLDER, settled_by
from rl_cli.core.errors import WorkFailed
from rl_cli.core.files import append_jsonl, read_json, read_jsonl, write_json

if TYPE_CHECKING:
    from rl_cli.training.evaluation import Rollouts

NOTE = (
    "The warm start was deliberately imperfect: it learned from worked solutions of which a part stops too "
    "early, so that there is something left for GRPO to learn."
)


WAITING_EVERY_SECONDS = 60
GATE_TASKS, GATE_SAMPLES = 128, 8
SOLVED = 0.5
"""A reward above this counts as solved."""


@dataclass(frozen=True)
class WarmStart:
    path: Path
    """Holds model and tokenizer."""
    source: str
    """"trained here" or "cache"."""
    steps: int
    gate: float | None
    figures: list[dict[str, Any]]
    """One per logged SFT step: {"step", "loss", ...}."""


@dataclass(frozen=True)
class Watcher:
    """Who wants to know how it goes."""

    phase: Callable[[str], None]
    figures: Callable[[int, dict[str, Any]], None]
    event: Callable[..., None]
    should_stop: Callable[[], bool]


class Stopped(Exception):
    """The watcher asked for a stop before the warm start was ready."""


def obtain(env: Environment, config: RunConfig, home: Path, watcher: Watcher) -> WarmStart:
    """Takes the warm start from the cache, or trains it and puts it there; two processes never both train it.

    Raises:
        WorkFailed: The environment has no worked solutions, or the gate was not reached.
        Stopped: As the watcher asked.
    """
    rows = env.warm_start(config.seed, config.sft.rows)
    if not rows:
        raise WorkFailed(f"{env.name} has no worked solutions to warm-start the tiny model on")
    causes = _causes(env, config, rows)
    key = hashlib.sha256(json.dumps(causes, sort_keys=True).encode()).hexdigest()[:16]
    folder = home / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / f"{key}.lock", watcher):
        target = folder / key
        if target.exists():
            problem = _damage(target)
            if problem is None:
                return _read(target, "cache")
            message = f"the kept warm start {target} is damaged and is built anew: {problem}"
            watcher.event("warning", message=message)
            shutil.rmtree(target)
        draft = folder / f".new-{key}-{secrets.token_hex(4)}"
        try:
            draft.mkdir()
            _build(env, config, rows, causes, draft, watcher)
            draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return _read(target, "trained here")


def _causes(env: Environment, config: RunConfig, rows: list[list[WarmStartSegment]]) -> dict[str, Any]:
    """Everything that decides the outcome. The rows stand for the environment's code and options."""
    text = json.dumps([[[segment.text, segment.trained] for segment in row] for row in rows])
    decided = {"environment": env.name, "rows": hashlib.sha256(text.encode()).hexdigest()}
    return {**settled_by(config), **decided}


def _build(
    env: Environment,
    config: RunConfig,
    rows: list[list[WarmStartSegment]],
    causes: dict[str, Any],
    folder: Path,
    watcher: Watcher,
) -> None:
    from rl_cli.training.evaluation import Rollouts
    from rl_cli.training.models import Loaded, make_policy
    from rl_cli.training.sft import SftResult, train_sft
    from rl_cli.training.tiny_model import TinyConfig, build_model, build_tokenizer

    tokenizer = build_tokenizer("".join(segment.text for segment in row) for row in rows)
    loaded = Loaded(build_model(TinyConfig(), config.seed), tokenizer, tiny=True)
    result = SftResult(0, None, reached=True, stopped=False)
    if config.sft.steps:
        watcher.phase("sft")

        def note(step: int, figures: dict[str, Any]) -> None:
            append_jsonl(folder / "sft.jsonl", {"step": step, **figures})
            watcher.figures(step, figures)

        with Rollouts(env, make_policy(loaded, "warm start"), config.grpo, config.seed) as rollouts:
            result = train_sft(
                loaded.model,
                tokenizer,
                rows,
                config.sft,
                config.seed,
                measure=lambda: gate_measure(rollouts),
                on_figures=note,
                should_stop=watcher.should_stop,
            )
    if result.stopped:
        raise Stopped
    if not result.reached:
        raise WorkFailed(
            f"the warm start reached {result.gate or 0:.2f} after {result.steps} steps, and GRPO needs "
            f"sft.gate {config.sft.gate:g} to have something to learn from",
            "raise sft.max_steps, or lower sft.gate",
        )
    loaded.model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    files = {path.name: _checksum(path) for path in sorted(folder.iterdir())}
    record = {"steps": result.steps, "gate": result.gate, "causes": causes, "files": files}
    write_json(folder / "warm_start.json", record)


def gate_measure(rollouts: Rollouts) -> float:
    """The share of 128 validation tasks that at least one of 8 samples solves (pass@8).

    What GRPO can learn from: greedy accuracy says little about it this early. Leaves torch's random state
    alone.
    """
    import torch

    before = torch.get_rng_state()
    groups = rollouts.groups(rollouts.tasks("validation", GATE_TASKS), GATE_SAMPLES)
    torch.set_rng_state(before)
    solved = [any(r.reward and r.reward.value > SOLVED for r in group.rollouts) for group in groups]
    return sum(solved) / len(solved)


def _read(folder: Path, source: str) -> WarmStart:
    record = read_json(folder / "warm_start.json")
    return WarmStart(folder, source, record["steps"], record["gate"], list(read_jsonl(folder / "sft.jsonl")))


def _damage(folder: Path) -> str | None:
    """What is wrong with a kept warm start; None if every file is as it was written."""
    try:
        files = read_json(folder / "warm_start.json")["files"]
        changed = [name for name, checksum in files.items() if _checksum(folder / name) != checksum]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    return f"changed: {', '.join(changed)}" if changed else None


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def _locked(path: Path, watcher: Watcher) -> Iterator[None]:
    """Holds the lock; while another process trains the same warm start, waits and looks out for a stop."""
    import filelock

    lock = filelock.FileLock(path)
    said = -math.inf
    while True:
        if watcher.should_stop():
            raise Stopped
        try:
            lock.acquire(timeout=0.5)
        except filelock.Timeout:
            if time.monotonic() - said > WAITING_EVERY_SECONDS:  # so that nobody takes the run for stalled
                said = time.monotonic()
                watcher.event("waiting", reason="another process is training the same warm start")
            continue
        try:
            yield
        finally:
            lock.release()
        return
