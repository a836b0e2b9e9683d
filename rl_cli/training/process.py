"""What a training process sets before torch is imported: threads, silence, no telemetry."""

from __future__ import annotations

import logging
import os
import warnings

SETTINGS = {
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "WANDB_DISABLED": "true",  # processes of their own track it; the trainer never talks to W&B
    "MALLOC_ARENA_MAX": "4",
    "OMP_WAIT_POLICY": "PASSIVE",  # a thread that spins takes the core from another run
}


MAX_THREADS = 4
"""More threads make a small model slower."""


def prepare_process() -> None:
    """Sets this process's environment; call it before torch is imported. What is set already stays."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    os.environ.setdefault("OMP_NUM_THREADS", str(_cores()))
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
    # One warning per rollout without a verdict, with all of its fields: counted in the metrics instead.
    logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_THREADS)
