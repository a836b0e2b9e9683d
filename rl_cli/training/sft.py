"""The supervised warm start: TRL's SFTTrainer on worked solutions, until a measure is reached.

The learning rate rises, stays until the gate is reached, and then falls to 0, so that the point
where GRPO starts depends less on the last few batches.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from environments.base import WarmStartSegment
from rl_cli.config.tree import SftSection
from rl_cli.core.errors import WorkFailed

CHUNK = 25
"""Steps between looks at the gate, once sft.steps are done."""
LOG_EVERY = 5


@dataclass(frozen=True)
class SftResult:
    steps: int
    gate: float | None
    """The measure at the last look; None if it was stopped before the first."""
    reached: bool
    stopped: bool


def tokenize(rows: Sequence[Sequence[WarmStartSegment]], tokenizer: Any) -> list[dict[str, list[int]]]:
    """One {"input_ids", "labels"} per row. A label is -100 where the token is not the model's to write.

    Segments are tokenized one by one, as they are in rollouts; the end-of-sequence token is the model's.
    """
    encoded = []
    for row in rows:
        ids: list[int] = []
        labels: list[int] = []
        for segment in row:
            piece = tokenizer(segment.text, add_special_tokens=False).input_ids
            ids += piece
            labels += piece if segment.trained else [-100] * len(piece)
        encoded.append(
            {"input_ids": [*ids, tokenizer.eos_token_id], "labels": [*labels, tokenizer.eos_token_id]}
        )
    return encoded


def train_sft(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Sequence[WarmStartSegment]],
    section: SftSection,
    seed: int,
    *,
    measure: Callable[[], float],
    on_figures: Callable[[int, dict[str, Any]], None],
    should_stop: Callable[[], bool],
) -> SftResult:
    """Trains the model in place: to section.steps, on until the gate is reached, and through the cool-down.

    section.max_steps is never passed: the gate is given up while the cool-down still fits, and where it never
    did, it is shortened to what is left after section.steps. Without the gate there is no cool-down.

    Args:
        measure: The figure that the gate is about; called between steps, must leave random states alone.
        on_figures: Gets (step, loss and the like).
        should_stop: Asked after every step.
    """
    from datasets import Dataset
    from torch.optim.lr_scheduler import LambdaLR
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    gate: float | None = None
    passed_at: int | None = None
    stopped = False
    last_look = max(section.steps, section.max_steps - section.cooldown_steps)
    cooldown = min(section.cooldown_steps, section.max_steps - last_look)

    def share_of_rate(step: int) -> float:
        if passed_at is None:
            return min(1.0, (step + 1) / max(1, section.warmup_steps))
        return max(0.0, 1 - (step - passed_at) / max(1, cooldown))

    class Trainer(SFTTrainer):
        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            chosen: Any = optimizer or self.optimizer
            self.lr_scheduler = LambdaLR(chosen, share_of_rate)
            return self.lr_scheduler

    class Watch(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if "loss" not in logs:
                return
            figures = {name: logs.get(name) for name in ("loss", "grad_norm", "learning_rate")}
            on_figures(state.global_step, figures)
            if not math.isfinite(logs["loss"]):
                message = f"the warm start's loss became {logs['loss']} at step {state.global_step}"
                raise WorkFailed(message, "try a lower sft.learning_rate")

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            nonlocal gate, passed_at, stopped
            step = state.global_step
            due = step >= section.steps and (step - section.steps) % CHUNK == 0
            if passed_at is None and (due or step == last_look):
                gate = measure()
                on_figures(step, {"gate": gate})
                passed_at = step if gate >= section.gate else None
            stopped = should_stop()
            cooled = passed_at is not None and step - passed_at >= cooldown
            given_up = passed_at is None and step >= last_look
            if stopped or cooled or given_up:
                control.should_training_stop = True

    with tempfile.TemporaryDirectory() as scratch:
        trainer = Trainer(
            model=model,
            processing_class=tokenizer,
            train_dataset=Dataset.from_list(tokenize(rows, tokenizer)),
            callbacks=[Watch()],
            args=SFTConfig(
                output_dir=scratch,
                use_cpu=True,
                bf16=False,
                gradient_checkpointing=False,
                learning_rate=section.learning_rate,
                adam_beta2=0.95,
                per_device_train_batch_size=section.batch_size,
                max_steps=section.max_steps,
                max_length=None,
                logging_steps=LOG_EVERY,
                logging_nan_inf_filter=False,
                save_strategy="no",
                report_to="none",
                dataloader_pin_memory=False,
                disable_tqdm=True,
                seed=seed,
            ),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        steps = trainer.state.global_step
    return SftResult(steps, gate, passed_at is not None, stopped)
