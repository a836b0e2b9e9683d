"""What a training process sets before torch is imported: threads, silence, no telemetry."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path

SETTINGS = {
    "TOKENIZERS_PARALLELISM": "false",
    "TRL_EXPERIMENTAL_SILENCE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "WANDB_DISABLED": "true",  # the mirror is a process of its own; the trainer never talks to W&B
    "MALLOC_ARENA_MAX": "4",
    "OMP_WAIT_POLICY": "PASSIVE",  # a thread that spins takes the core from another run
}


MAX_THREADS = 4
"""More threads make a small model slower."""


def prepare_process(model: str = "tiny") -> None:
    """Sets the environment of this process; call it before anything imports torch.

    A variable that is already set stays. A model that is built here or lies in a folder needs no network: the
    Hugging Face libraries are told so, and never wait for it.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    if model == "tiny" or Path(model).is_dir():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("OMP_NUM_THREADS", str(_cores()))
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
    # One warning per rollout without a verdict, with all of its fields: counted in the metrics instead.
    logging.getLogger("trl.trainer.grpo_trainer").setLevel(logging.ERROR)


def _cores() -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MAX_THREADS)
