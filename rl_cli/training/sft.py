"""The supervised warm start: TRL's SFTTrainer on worked solutions, until a measure is reached."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from environments.base import WarmStartSegment
from rl_cli.training.config import SftSection

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
    """Trains the model in place: section.steps, and on until the gate is reached or max_steps are done.

    Args:
        measure: The figure that the gate is about; called between steps, must leave random states alone.
        on_figures: Gets (step, loss and the like).
        should_stop: Asked after every step.
    """
    from datasets import Dataset
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    gate: float | None = None
    stopped = False

    class Watch(TrainerCallback):
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
            if "loss" in logs:
                on_figures(
                    state.global_step,
                    {name: logs.get(name) for name in ("loss", "grad_norm", "learning_rate")},
                )

        def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            nonlocal gate, stopped
            step = state.global_step
            if (step >= section.steps and (step - section.steps) % CHUNK == 0) or step == section.max_steps:
                gate = measure()
                on_figures(step, {"gate": gate})
            stopped = should_stop()
            if stopped or (gate is not None and gate >= section.gate):
                control.should_training_stop = True

    with tempfile.TemporaryDirectory() as scratch:
        trainer = SFTTrainer(
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
                lr_scheduler_type="constant_with_warmup",
                warmup_steps=section.warmup_steps,
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
    reached = gate is not None and gate >= section.gate
    return SftResult(steps, gate, reached, stopped and not reached)
