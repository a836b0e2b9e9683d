"""One training run inside its worker: warm start, evaluation, GRPO, evaluation.

A run that is resumed from a checkpoint takes the same way; what its files hold already is not done again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from environments.base import Environment, ScoredGroup, Split, Task
from environments.catalogue import load_environment
from rl_cli.config.tree import RunConfig
from rl_cli.core.errors import WorkFailed
from rl_cli.core.extras import require_extra
from rl_cli.core.files import read_jsonl, write_atomic
from rl_cli.core.json_text import to_json
from rl_cli.runs.checkpoints import FOLDER, WRITING
from rl_cli.runs.retention import grpo_rows, validations
from rl_cli.runs.run_dir import RunDir
from rl_cli.training import warm_start
from rl_cli.training.evaluation import Rollouts, training_batches
from rl_cli.training.models import (
    Loaded,
    all_finite,
    load_pretrained,
    load_tiny,
    load_weights,
    make_policy,
)
from rl_cli.training.rollout_rows import pick_samples, sample_fields, task_result
from rl_cli.training.saving import save
from rl_cli.training.trl_adapter import Decision, build_trainer, vllm_engine


def train(run: RunDir) -> tuple[str, str]:
    """Returns ("finished" or "stopped", reason).

    Raises:
        RlCliError: What a person can understand and mend.
    """
    config = run.config()
    run.append_event("phase", name="loading")
    require_extra("train")
    env = load_environment(config.environment.name, config.environment.options, config.environment.folder)
    batches = _Batches(env, config)
    from trl import GRPOTrainer  # noqa: F401  (takes seconds, and belongs to loading)

    tiny = config.model.name == "tiny"
    loaded = None if tiny else load_pretrained(config.model)
    run.mark_ready("trainer", total_steps=config.grpo.steps)
    if tiny:
        try:
            loaded = _warm_started(run, config, env)
        except warm_start.Stopped:
            return _stopped(run, "before the warm start was ready")
    assert loaded is not None
    if run.stop_requested():
        return _stopped(run, "before GRPO began")
    if not tiny:
        run.append_event("phase", name="evaluation")
    with Rollouts(env, make_policy(loaded, f"run:{run.id}"), config.grpo, config.seed) as rollouts:
        training = _Training(run, config, loaded, rollouts, batches)
        return training.go()


def _stopped(run: RunDir, when: str) -> tuple[str, str]:
    request = run.stop_requested() or {}
    return "stopped", f"{request.get('reason', 'asked to stop')} ({when})"


class _Batches:
    """The tasks of each step, by number: step k trains on tasks k * tasks_per_step and following."""

    def __init__(self, env: Environment, config: RunConfig) -> None:
        self.size = config.tasks_per_step
        self._source = training_batches(env, config.seed, self.size)
        self._next, self._batch = 1, next(self._source)

    def take(self, numbers: Sequence[int]) -> list[Task]:
        step = numbers[0] // self.size
        if list(numbers) != list(range(step * self.size, (step + 1) * self.size)) or step + 1 < self._next:
            raise ValueError(f"tasks {numbers[0]} to {numbers[-1]} are no step's, or one that has passed")
        while self._next <= step:
            self._batch, self._next = next(self._source), self._next + 1
        return self._batch


def _warm_started(run: RunDir, config: RunConfig, env: Environment) -> Loaded:
    """The tiny model where GRPO starts, with the figures of its warm start written into the run."""
    from rl_cli.training.tiny_model import TinyConfig, build_model

    resume = run.resume()
    told = resume is not None and resume.checkpoint is not None  # its figures are in the run already

    def note(step: int, figures: dict[str, Any]) -> None:
        if not told:
            run.append_metrics("sft", step, **figures)

    watcher = warm_start.Watcher(
        phase=lambda name: run.append_event("phase", name=name),
        figures=note,
        event=run.append_event,
        should_stop=lambda: run.stop_requested() is not None,
    )
    start = warm_start.obtain(env, config, run.path.parent.parent, watcher)
    if start.source == "cache":
        for row in start.figures:
            figures = {k: v for k, v in row.items() if k != "step"}
            note(row["step"], {"cached": True, **figures})
    if not told:
        run.append_event(
            "warm_start",
            source=start.source,
            path=str(start.path),
            steps=start.steps,
            gate=start.gate,
            note=warm_start.NOTE if start.steps else "There was no warm start (sft.steps is 0).",
        )
    run.append_event("phase", name="evaluation")
    loaded = load_tiny(start.path)
    blank = Loaded(build_model(TinyConfig(), config.seed), loaded.tokenizer, tiny=True)
    with Rollouts(env, make_policy(blank, "untrained"), config.grpo, config.seed) as rollouts:
        _evaluate_once(run, rollouts, "untrained", config.evaluation.test_tasks)
    return loaded


def _evaluate_once(run: RunDir, rollouts: Rollouts, which: str, count: int) -> None:
    """What is measured before GRPO, unless an earlier attempt measured it on the same tasks."""
    tasks = {task.id for task in rollouts.tasks("test", count)}
    if {row["task_id"] for row in read_jsonl(_per_task(run, which))} != tasks:
        _evaluate(run, rollouts, which, count, step=0)


def _per_task(run: RunDir, which: str) -> Path:
    return run.path / "evaluations" / f"{which}.jsonl"


def _evaluate(run: RunDir, rollouts: Rollouts, which: str, count: int, step: int) -> float:
    """Evaluates, writes the event and, on the test split, each task's result; returns the accuracy."""
    split: Split = "validation" if which == "validation" else "test"
    result = rollouts.evaluate(split, count)
    accuracy = round(result.accuracy or 0.0, 6)
    run.append_event(
        "evaluation", which=which, split=split, n=result.n, accuracy=accuracy, step=step, errors=result.errors
    )
    if split == "test":
        path = _per_task(run, which)
        path.parent.mkdir(exist_ok=True)
        write_atomic(path, "".join(to_json(task_result(r)) + "\n" for r in result.rollouts))
    print(f"{which} ({split}, {result.n} tasks) at step {step}: {accuracy}", flush=True)
    return accuracy


class _Training:
    """GRPO from the loaded model on, between two evaluations."""

    def __init__(
        self, run: RunDir, config: RunConfig, loaded: Loaded, rollouts: Rollouts, batches: _Batches
    ) -> None:
        self.run, self.config, self.loaded, self.rollouts, self.batches = (
            run,
            config,
            loaded,
            rollouts,
            batches,
        )
        resume = run.resume()
        self.start = resume.checkpoint if resume else None
        self.step = resume.step if resume else 0
        self.best = max(((accuracy, step) for step, accuracy in validations(run).items()), default=(-1.0, 0))
        self.groups: list[ScoredGroup] = []
        self.checkpoints = run.path / FOLDER

    def go(self) -> tuple[str, str]:
        from transformers import set_seed

        tests = self.config.evaluation.test_tasks
        _evaluate_once(self.run, self.rollouts, "initial", tests)
        set_seed(self.config.seed)  # a run does not depend on whether its warm start came from the cache
        self.run.append_event("phase", name="grpo")
        trainer = build_trainer(
            self.loaded,
            self.config,
            self.collect,
            self.on_step,
            self.on_checkpoint,
            self.checkpoints / WRITING,
            tokens=next(reversed([row["tokens"] for _, row in grpo_rows(self.run)]), 0),
        )
        if engine := vllm_engine(trainer):
            self.rollouts.sampler = make_policy(self.loaded, self.rollouts.policy.name, engine)
        if self.start and self.step >= self.config.grpo.steps:
            load_weights(self.loaded, self.start)
        else:
            trainer.train(resume_from_checkpoint=str(self.start) if self.start else None)

        self.run.append_event("phase", name="evaluation")
        _evaluate(self.run, self.rollouts, "final", tests, step=self.step)
        _, best_step = self.best
        if best_step not in (0, self.step):
            load_weights(self.loaded, self.checkpoints / f"step-{best_step}")
            _evaluate(self.run, self.rollouts, "best", tests, step=best_step)
        elif best_step:
            self._repeat_final_as_best()
        if self.step < self.config.grpo.steps:
            return _stopped(self.run, f"after step {self.step} of {self.config.grpo.steps}")
        return "finished", f"all {self.step} steps done"

    def collect(self, numbers: Sequence[int]) -> list[ScoredGroup]:
        self.groups = self.rollouts.groups(self.batches.take(numbers), step=self.step + 1)
        return self.groups

    def on_step(self, step: int, figures: dict[str, Any]) -> Decision:
        self.step = step
        broken = [name for name in ("loss", "grad_norm") if not math.isfinite(figures[name] or 0.0)]
        validated = not broken and (
            step % self.config.evaluation.every == 0 or step == self.config.grpo.steps
        )
        improved = False
        if validated:
            accuracy = _evaluate(
                self.run, self.rollouts, "validation", self.config.evaluation.validation_tasks, step
            )
            figures["accuracy/validation"] = accuracy
            improved = accuracy >= self.best[0]  # of equals the later one: it has seen more
            self.best = max(self.best, (accuracy, step))
        self.run.append_metrics("grpo", step, **figures)
        for rollout in pick_samples(self.groups):
            self.run.append_sample(phase="grpo", step=step, **sample_fields(rollout))
        shown = {
            name: figures.get(name) for name in ("reward/mean", "groups/with_signal", "loss", "seconds/step")
        }
        print(f"step {step}/{self.config.grpo.steps}: {shown}", flush=True)
        if broken:
            value = "NaN" if math.isnan(figures[broken[0]]) else "infinite"
            raise WorkFailed(
                f"diverged: {broken[0]} is {value} at grpo step {step}", "try a lower learning rate"
            )
        stop, last = self.run.stop_requested() is not None, step == self.config.grpo.steps
        save = step % self.config.grpo.checkpoint_every == 0 or improved or stop or last
        if save and not all_finite(self.loaded.model):  # the next step's loss will say so, and end the run
            what = f"the weights are no numbers after step {step}"
            if last:
                raise WorkFailed(what, "try a lower learning rate")
            self.run.append_event("warning", message=f"{what}: no checkpoint is written")
            save = False
        return Decision(save=save, stop=stop)

    def on_checkpoint(self, step: int, folder: Path) -> None:
        save(self.run, step, folder)

    def _repeat_final_as_best(self) -> None:
        final = next(
            e for e in reversed(self.run.events()) if e["kind"] == "evaluation" and e["which"] == "final"
        )
        fields = {name: final[name] for name in ("split", "n", "accuracy", "step", "errors")}
        self.run.append_event("evaluation", which="best", **fields)
        write_atomic(_per_task(self.run, "best"), _per_task(self.run, "final").read_bytes())
