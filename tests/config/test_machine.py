from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rl_cli.config.machine import can_train, choose_profile, describe_machine
from rl_cli.config.profiles import load_profile
from rl_cli.core.extras import require_extra

NO_GPU = {"cpus": 2, "memory_gb": 8.0, "gpus": []}


def test_this_machine_is_described_and_can_train_the_demo():
    machine = describe_machine()
    assert machine["cpus"] >= 1
    assert machine["memory_gb"] > 0
    assert can_train("cpu-demo", machine) == (True, None)


def test_a_gpu_profile_without_a_gpu_says_why_not():
    able, why = can_train(load_profile("single-gpu"), NO_GPU)
    assert not able
    assert "NVIDIA GPU" in why
    assert choose_profile(("single-gpu", "cpu-demo"), NO_GPU) == "cpu-demo"
    assert choose_profile(("single-gpu",), NO_GPU) == "single-gpu"


def test_nvidia_smi_is_read_where_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 'NVIDIA H100, 80 GB HBM3, 81559'\necho 'No devices were found'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert describe_machine()["gpus"] == [{"name": "NVIDIA H100, 80 GB HBM3", "memory_gb": 79.6}]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert describe_machine()["gpus"] == []


def test_a_missing_extra_names_the_install_command():
    missing = "import importlib.util as u; u.find_spec = lambda name: None\n"
    code = missing + "from rl_cli.core.extras import require_extra\nrequire_extra('train')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "BadUsage" in ran.stderr
    assert "pip install 'rl-flywheel[train]'" in ran.stderr
    assert "torch" in ran.stderr


@pytest.mark.train
def test_the_extra_is_found_where_it_is_installed():
    require_extra("train")
