"""What this computer can train, found out without importing torch."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rl_cli.config.profiles import Profile, load_profile
from rl_cli.core.extras import install_command, missing_modules


def describe_machine() -> dict[str, Any]:
    """Returns {"cpus": usable cores, "memory_gb": total, "gpus": [{"name", "memory_gb"}]}."""
    import psutil

    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {"cpus": cpus, "memory_gb": round(psutil.virtual_memory().total / 2**30, 1), "gpus": _gpus()}


def _gpus() -> list[dict[str, Any]]:
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1", "none"):
        return []
    query = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            query, capture_output=True, text=True, timeout=20, check=True, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):  # no driver, or one that does not answer: no usable GPU
        return []
    rows = [line.rpartition(",") for line in answer.stdout.splitlines() if "," in line]
    return [
        {"name": name.strip(), "memory_gb": round(float(memory) / 1024, 1)}
        for name, _, memory in rows
        if memory.strip().replace(".", "", 1).isdigit()
    ]


def can_train(profile: str | Profile, machine: dict[str, Any] | None = None) -> tuple[bool, str | None]:
    """Can this computer train with the profile? Returns (True, None), or (False, why not)."""
    profile = load_profile(profile) if isinstance(profile, str) else profile
    if missing_modules("train"):
        return False, f"the train extra is not installed: {install_command('train')}"
    if not profile.needs_gpu:
        return True, None
    machine = machine if machine is not None else describe_machine()
    if not machine["gpus"]:
        return False, f"the profile {profile.name} needs an NVIDIA GPU, and none was found on this machine"
    if _version("torch").endswith("+cpu"):
        return False, f"the profile {profile.name} needs a torch with CUDA, and the installed one is for CPUs"
    return True, None


def choose_profile(offered: tuple[str, ...] | list[str], machine: dict[str, Any] | None = None) -> str:
    """The profile to use where nobody named one: a GPU's where one can be used, else the first usable.

    Args:
        offered: An environment's profiles.
    """
    machine = machine if machine is not None else describe_machine()
    usable = [name for name in offered if can_train(name, machine)[0]]
    with_gpu = [name for name in usable if load_profile(name).needs_gpu]
    return (with_gpu or usable or list(offered))[0]


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
