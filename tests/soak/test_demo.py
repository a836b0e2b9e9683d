"""The sentence itself at full size, in both languages and with three seeds; figures are printed."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.cli import command, installed

pytestmark = [pytest.mark.soak, pytest.mark.train]

PEAK_GB = 1.6


def peak_of_the_largest(process: psutil.Process) -> int:
    """Resident bytes of the largest process that `process` started, detached ones included, or of itself."""
    home = os.environ["RL_CLI_HOME"]
    largest = process.memory_info().rss
    for other in psutil.process_iter(["cmdline", "memory_info"]):
        if any(home in word for word in other.info["cmdline"] or []) and other.info["memory_info"]:
            largest = max(largest, other.info["memory_info"].rss)
    return largest


def say(log: Path, request: str, *options: str) -> dict[str, Any]:
    """Runs the request to its end; seconds, the largest process, and the text."""
    threads = {"OMP_NUM_THREADS": str(min(4, os.cpu_count() or 1))}
    started, peak = time.monotonic(), 0
    with (
        log.open("w") as out,
        subprocess.Popen(
            command(request, "--yes", *options),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=os.environ | threads,
        ) as process,
    ):
        while process.poll() is None:
            try:
                peak = max(peak, peak_of_the_largest(psutil.Process(process.pid)))
            except psutil.NoSuchProcess:
                break
            time.sleep(0.3)
    text = log.read_text("utf-8")
    assert process.returncode == 0, text
    return {"seconds": time.monotonic() - started, "peak_gb": peak / 2**30, "text": text}


@pytest.mark.parametrize(
    ("request_", "seed"),
    [
        ("train a GSM8K model", 0),
        ("train a GSM8K model", 1),
        ("train a GSM8K model", 2),
        ("训练一个 GSM8K 模型", 0),
    ],
)
def test_one_sentence_gains_forty_points(home: Path, request_: str, seed: int):
    said = say(home.parent / "said.txt", request_, "--seed", str(seed))
    [run] = installed("runs", "list", "--json").rows()
    evaluation = run["eval"]
    gain = evaluation["final"] - evaluation["initial"]
    accuracy = f"initial {evaluation['initial']:.4f} final {evaluation['final']:.4f} gain {gain:.4f}"
    costs = f"{said['seconds']:.0f} s, largest process {said['peak_gb']:.2f} GB"
    print(f"\n{request_!r} seed {seed}: {accuracy} on {evaluation['n']}; {costs}", flush=True)
    assert run["state"] == "finished"
    assert evaluation["n"] >= 400
    assert gain >= 0.40
    assert said["peak_gb"] < PEAK_GB
    for shown in ("rl_list_environments", "rl_test_inference", "rl_start_training", "grpo step"):
        assert shown in said["text"]
