"""A few steps of training on the real loop, and the same steps with TRL's own generation."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

from environments.base import Environment, ScoredGroup
from environments.catalogue import load_environment
from rl_cli.config.tree import RunConfig
from rl_cli.training.evaluation import Rollouts, training_batches

STEPS, TASKS, GROUP = 3, 8, 4


def config(environment: str, **grpo: Any) -> RunConfig:
    section = {"steps": STEPS, "batch_size": TASKS * GROUP, "group_size": GROUP, "learning_rate": 3e-4} | grpo
    return RunConfig.model_validate({"environment": {"name": environment}, "grpo": section})


class Run:
    """A few steps on the real loop, remembering what went through."""

    def __init__(
        self, loaded: Any, settings: RunConfig, folder: Path, env: Environment | None = None, **options: Any
    ) -> None:
        from transformers import set_seed

        from rl_cli.training.models import make_policy
        from rl_cli.training.trl_adapter import Decision, build_trainer

        self.env = env or load_environment(settings.environment.name)
        self.batches = training_batches(self.env, 0, settings.tasks_per_step)
        self.groups: list[list[ScoredGroup]] = []
        self.figures: list[dict[str, Any]] = []
        self.loaded = loaded
        with Rollouts(self.env, make_policy(loaded, "test"), settings.grpo, 0) as rollouts:

            def collect(numbers: Any) -> list[ScoredGroup]:
                self.groups.append(rollouts.groups(next(self.batches)))
                return self.groups[-1]

            def on_step(step: int, figures: dict[str, Any]) -> Decision:
                self.figures.append(figures)
                return Decision()

            self.trainer = build_trainer(
                loaded, settings, collect, on_step, lambda step, path: None, folder, **options
            )
            self.inputs: list[dict[str, Any]] = []
            compute = self.trainer._compute_loss

            def compute_loss(model: Any, inputs: dict[str, Any]) -> Any:
                self.inputs.append(inputs)
                return compute(model, inputs)

            self.trainer._compute_loss = compute_loss
            set_seed(0)
            self.trainer.train()

    def rewards(self) -> list[float]:
        return [figures["reward/mean"] for figures in self.figures]


def digest(model: Any) -> str:
    import hashlib

    parts = b"".join(p.detach().numpy().tobytes() for _, p in sorted(model.named_parameters()))
    return hashlib.sha256(parts).hexdigest()


def trl_alone(loaded: Any, settings: RunConfig, folder: Path) -> tuple[list[float], list[float]]:
    """The same steps with TRL's own generation: the mean reward and the seconds of each."""
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback, set_seed
    from trl import GRPOTrainer

    from environments.rewards.numbers import grade_number
    from rl_cli.training.trl_adapter import _arguments

    env = load_environment(settings.environment.name)
    batches = training_batches(env, 0, settings.tasks_per_step)
    tasks = list(itertools.chain(*itertools.islice(batches, settings.grpo.steps)))
    curve: list[float] = []
    seconds: list[float] = []

    def reward(completions: list[str], gold: list[str], **_: Any) -> list[float]:
        pairs = zip(completions, gold, strict=True)
        return [float(grade_number(answer, text).correct) for text, answer in pairs]

    class Watch(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.started = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            seconds.append(time.perf_counter() - self.started)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if "reward" in logs:
                curve.append(logs["reward"])

    trainer = GRPOTrainer(
        model=loaded.model,
        processing_class=loaded.tokenizer,
        reward_funcs=[reward],
        train_dataset=Dataset.from_list(
            [{"prompt": env.prompt(t)[0]["content"], "gold": str(t.data["answer"])} for t in tasks]
        ),
        callbacks=[Watch()],
        args=_arguments(settings, folder, tiny=True),
    )
    trainer.remove_callback(PrinterCallback)
    set_seed(0)
    trainer.train()
    return curve, seconds
