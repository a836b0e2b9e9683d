"""GRPO by TRL's trainer on rollouts that are made here. The only module that leans on TRL's private parts.

TRL calls `rollout_func` (experimental) with the prompts of one step, each repeated group_size times in a
row, and wants one row per entry back, in the same order. It takes wrong lengths silently (they are padded),
and a missing row moves every reward after it. So everything is checked here.

Overridden, and checked against trl 1.16: `_generate_and_score_completions`, `_compute_loss`,
`_get_per_token_logps_and_entropies`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from environments.base import ScoredGroup
from rl_cli.config.tree import RunConfig
from rl_cli.core.errors import BadUsage
from rl_cli.training.models import Loaded
from rl_cli.training.rollout_rows import Rows, step_figures, to_rows


@dataclass(frozen=True)
class Decision:
    """What is to be done after a step."""

    save: bool = False
    stop: bool = False


Collect = Callable[[Sequence[int]], list[ScoredGroup]]
"""Makes the rollouts of one step: the numbers of its tasks -> one group for each, in order."""
OnStep = Callable[[int, dict[str, Any]], Decision]
"""Told (step, figures) after each step, before anything is saved."""
OnCheckpoint = Callable[[int, Path], None]
"""Told (step, folder) once a checkpoint is complete."""


def build_trainer(
    loaded: Loaded,
    config: RunConfig,
    collect: Collect,
    on_step: OnStep,
    on_checkpoint: OnCheckpoint,
    output_dir: Path,
    drop_weightless: bool = True,
    tokens: int = 0,
) -> Any:
    """A GRPOTrainer whose train() runs config.grpo.steps steps.

    After train(resume_from_checkpoint=FOLDER) the learning rate is the config's, not the checkpoint's.

    Args:
        output_dir: Where TRL writes `checkpoint-<step>` folders.
        drop_weightless: Leave rows with advantage 0 out of the forward and backward pass, where that changes
            nothing but the order in which floats are added.
        tokens: Sampled by the steps before a checkpoint that it goes on from.
    """
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import GRPOTrainer

    grpo, tasks = config.grpo, config.tasks_per_step

    class RolloutTrainer(GRPOTrainer):
        """Hands the step's rows to rollout_func, and leaves rows out that cannot change the weights."""

        rows: Rows
        figures: dict[str, Any]
        args: Any

        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            self.task_numbers = [row["task"] for row in inputs]
            self.max_logprob_diff = 0.0
            output: dict[str, Any] = super()._generate_and_score_completions(inputs)
            import torch

            signal = torch.tensor(self.rows.has_signal, device=output["advantages"].device)
            output["advantages"] = output["advantages"] * signal
            # Exact where the loss is a sum over tokens divided by a count taken before (dapo), and nothing
            # but the advantage puts weight on a row.
            whole = self.args.steps_per_generation == 1 and self.num_iterations == 1
            if drop_weightless and whole and self.beta == 0:
                output = keep_weighty(output)
            return output

        def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
            result = super()._get_per_token_logps_and_entropies(*args, **kwargs)
            self.last_logps = result[0].detach()
            return result

        def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
            loss = super()._compute_loss(model, inputs)
            mask = inputs["completion_mask"] * inputs["tool_mask"]
            difference = (self.last_logps - inputs["sampling_per_token_logps"]).abs() * mask
            self.max_logprob_diff = max(self.max_logprob_diff, difference.max().item())
            return loss

    def rollout_func(prompts: list[Any], trainer: Any) -> dict[str, list[Any]]:
        started = time.perf_counter()
        numbers = trainer.task_numbers
        step_tasks = numbers[:: grpo.group_size]
        repeated = [number for number in step_tasks for _ in range(grpo.group_size)]
        assert trainer.model.training, "rollouts are made in training only"
        if numbers != repeated or not len(numbers) == len(prompts) == grpo.batch_size:
            raise RuntimeError("the rows of a step are not group after group: TRL's order has changed")
        groups = collect(step_tasks)
        assert trainer.model.training, "the rollouts left the model in another mode"
        assert [len(group.rollouts) for group in groups] == [grpo.group_size] * len(step_tasks)
        trainer.rows = rows = to_rows(groups, loaded.tokenizer.eos_token_id)
        check(rows, len(prompts))
        trainer.figures = {**step_figures(groups), "seconds/rollout": time.perf_counter() - started}
        return {
            "prompt_ids": rows.prompt_ids,
            "completion_ids": rows.completion_ids,
            "logprobs": rows.logprobs,
            "env_mask": rows.env_mask,
            "verdict": rows.rewards,
        }

    class Watch(TrainerCallback):
        trainer: Any = None
        started = 0.0

        def __init__(self) -> None:
            self.tokens = tokens

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            scheduler = getattr(kwargs["lr_scheduler"], "scheduler", kwargs["lr_scheduler"])  # unwrapped
            scheduler.base_lrs = scheduler._last_lr = [grpo.learning_rate for _ in scheduler.base_lrs]
            for group in kwargs["optimizer"].param_groups:
                group["initial_lr"] = group["lr"] = grpo.learning_rate

        def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.started = time.perf_counter()

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self.seconds = time.perf_counter() - self.started

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if "loss" not in logs:
                return
            figures = dict(self.trainer.figures)
            self.tokens += figures["tokens"]
            figures |= {"tokens": self.tokens, "seconds/step": self.seconds}
            figures |= {name: logs.get(name) for name in ("loss", "grad_norm", "learning_rate")}
            figures |= {"logprob/max_diff": self.trainer.max_logprob_diff}
            figures |= {"kl": logs["kl"]} if grpo.kl_beta else {}
            decision = on_step(state.global_step, figures)
            control.should_save = control.should_save or decision.save
            control.should_training_stop = control.should_training_stop or decision.stop

        def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            on_checkpoint(state.global_step, output_dir / f"checkpoint-{state.global_step}")

    watch = Watch()
    trainer = RolloutTrainer(
        model=loaded.model,
        processing_class=loaded.tokenizer,
        reward_funcs=[_verdict],
        train_dataset=Dataset.from_dict(
            {"prompt": [""] * (tasks * grpo.steps), "task": range(tasks * grpo.steps)}
        ),
        rollout_func=rollout_func,
        callbacks=[watch],
        args=_arguments(config, output_dir, tiny=loaded.tiny),
    )
    watch.trainer = trainer
    trainer.remove_callback(PrinterCallback)
    return trainer


def uses_vllm(config: RunConfig, tiny: bool) -> bool:
    """Whether vLLM samples; `auto` means: where it is installed and a GPU is there.

    Raises:
        BadUsage: The config asks for it by name, and it is not installed.
    """
    import torch

    installed = find_spec("vllm") is not None
    if config.grpo.generation == "vllm" and not installed:
        raise BadUsage(
            "grpo.generation is vllm, which is not installed", "pip install vllm, or use in-process"
        )
    wanted = config.grpo.generation == "vllm" or (config.grpo.generation == "auto" and installed)
    return wanted and not tiny and torch.cuda.is_available()


def vllm_engine(trainer: Any) -> Any:
    """The engine for rollouts where the trainer was built with vLLM, else None."""
    if not trainer.use_vllm:
        return None
    from rl_cli.training.vllm_engine import VllmEngine

    return VllmEngine(trainer.vllm_generation.llm, trainer.model, trainer.processing_class.pad_token_id)


def _arguments(config: RunConfig, output_dir: Path, tiny: bool) -> Any:
    import torch
    from trl import GRPOConfig

    grpo, micro = config.grpo, config.grpo.micro_batch_size or config.grpo.batch_size
    gpu = torch.cuda.is_available() and not tiny
    return GRPOConfig(
        output_dir=str(output_dir),
        use_cpu=not gpu,
        bf16=config.model.dtype == "bfloat16",
        gradient_checkpointing=not tiny,
        learning_rate=grpo.learning_rate,
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=1.0,
        per_device_train_batch_size=micro,
        gradient_accumulation_steps=grpo.batch_size // micro,
        num_generations=grpo.group_size,
        max_completion_length=grpo.max_new_tokens,
        max_steps=grpo.steps,
        num_iterations=1,
        beta=grpo.kl_beta,
        use_vllm=uses_vllm(config, tiny),
        vllm_mode="colocate",
        epsilon=grpo.clip_epsilon,
        loss_type="dapo",
        temperature=grpo.temperature,
        shuffle_dataset=False,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        report_to="none",
        dataloader_pin_memory=False,
        disable_tqdm=True,
        seed=config.seed,
    )


def _verdict(verdict: list[float | None], **_: Any) -> list[float | None]:
    """The reward function: what the environment said; None keeps a row out of its group's mean."""
    return verdict


def check(rows: Rows, expected: int) -> None:
    """Raises ValueError where TRL would go on with rows that do not fit together."""
    for name, column in vars(rows).items():
        if len(column) != expected:
            raise ValueError(f"{name} has {len(column)} rows, and the step has {expected}")
    for row, (ids, mask, logprobs) in enumerate(
        zip(rows.completion_ids, rows.env_mask, rows.logprobs, strict=True)
    ):
        if not len(ids) == len(mask) == len(logprobs) > 0:
            raise ValueError(
                f"row {row}: {len(ids)} tokens, {len(mask)} mask entries, {len(logprobs)} logprobs"
            )


def keep_weighty(output: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the rows whose advantage is 0 (at least one row stays); what is no row stays as it is."""
    import torch

    advantages = output["advantages"]
    keep = advantages.nonzero()[:, 0]
    if len(keep) == 0:
        keep = torch.zeros(1, dtype=torch.long, device=advantages.device)
    return {
        name: value[keep]
        if torch.is_tensor(value) and value.dim() and len(value) == len(advantages)
        else value
        for name, value in output.items()
    }
