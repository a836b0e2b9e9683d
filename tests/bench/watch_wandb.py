"""What `rl-cli runs watch wandb:...` takes on a run of 100,000 steps: memory, CPU, and whether it is exact.

`python -P -m tests.bench.watch_wandb [STEPS] [SECONDS]` prints one JSON object. The stand-in for W&B runs
in a process of its own, which is not counted.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from rl_cli.runs.progress import progress_of
from rl_cli.runs.run_dir import RunDir
from tests.e2e.cli import command
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import log, plant_run

METRICS = 16
HIGHEST = 2.0
PEAK = 0.7
"""Where, as a share of the steps, the one best reward stands."""
NAME = "wandb-team-rl-big"


TEN_MINUTES = 600.0
ANSWERS = 5
"""Times that the best step is asked for while the run goes on."""
SAMPLE_SECONDS = 0.1


@dataclass
class Taken:
    """Memory of a process tree, over time."""

    peak_pss: int = 0
    peak_rss: int = 0
    at_peak: dict[str, int] = field(default_factory=dict)
    """MB of PSS by process, when that was most."""

    def look(self, root: psutil.Process) -> None:
        pss = rss = 0
        parts: dict[str, int] = {}
        for process in [root, *root.children(recursive=True)]:
            try:
                memory = process.memory_full_info()
            except psutil.Error:
                continue
            pss, rss = pss + memory.pss, rss + memory.rss
            parts[process.name()] = parts.get(process.name(), 0) + (memory.pss >> 20)
        if pss > self.peak_pss:
            self.at_peak = parts
        self.peak_pss, self.peak_rss = max(self.peak_pss, pss), max(self.peak_rss, rss)


def cpu_seconds(root: psutil.Process) -> float:
    """CPU seconds of a process tree that runs; of what has ended in it, as its parent has reaped it."""
    total = 0.0
    for process in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def reaped_cpu_seconds() -> float:
    """CPU seconds of all children of this process that have ended, with all of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def rows(steps: int) -> list[dict[str, Any]]:
    """One row a step, METRICS figures, one peak of the reward."""
    made = []
    for step in range(steps):
        noise = {f"m{i}": ((step * (7 + i)) % 1009) / 1009 for i in range(METRICS - 2)}
        reward = HIGHEST if step == int(steps * PEAK) else ((step * 31) % 997) / 997
        made.append({"reward": reward, "loss": 1.0 / (1 + step), **noise})
    return made


def _serve(steps: int, pipe: Connection) -> None:
    """A run of so many steps that makes one more each second, until the pipe is closed."""
    with WandbServer() as server:
        run = plant_run(server, rows(steps), name="big")
        pipe.send(server.environment)
        while not pipe.poll(1):
            log(server, run, [{"reward": 0.5, "loss": 0.1, **{f"m{i}": 0.5 for i in range(METRICS - 2)}}])


def measure(steps: int, seconds: float, home: Path) -> dict[str, Any]:
    """Watches for so many seconds after the history was read.

    Returns:
        MB of the process tree at most (PSS, RSS); seconds, CPU seconds and share of a core until the history
        was read; share of a core after that, and, worked out from the two, over the first ten minutes; the
        best (step, value) each time that it was asked for meanwhile, and the right one. CPU is that of all
        processes of the watch, however short-lived, as the kernel counts it.
    """
    pipe, other = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(steps, other), daemon=True)
    server.start()
    environment = {**os.environ, **pipe.recv(), "RL_CLI_HOME": str(home), "HOME": str(home)}
    words = command("runs", "watch", "wandb:team/rl/big", "--json")
    before, began = reaped_cpu_seconds(), time.monotonic()
    watch = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    taken, root, run = Taken(), psutil.Process(watch.pid), RunDir(home / "runs" / NAME)
    read_after = read_cpu = None
    best: list[tuple[int, float] | None] = []
    try:
        while read_after is None or time.monotonic() - began < read_after + seconds:
            if watch.poll() is not None:
                raise RuntimeError(f"runs watch ended with {watch.returncode}")
            taken.look(root)
            if read_after is None and _state(run) == "running":
                read_after, read_cpu = time.monotonic() - began, cpu_seconds(root)
            elif (
                read_after
                and len(best) < ANSWERS
                and time.monotonic() - began > read_after + len(best) * seconds / ANSWERS
            ):
                best.append(progress_of(run).grpo["reward/mean"].best())
            time.sleep(SAMPLE_SECONDS)
        seen = cpu_seconds(root)
    finally:
        watch.terminate()
        watch.wait(30)
        whole, reaped = time.monotonic() - began, reaped_cpu_seconds() - before
        pipe.send("end")
        server.join(10)
    assert read_after is not None
    assert read_cpu is not None
    cpu = max(seen, reaped)  # what ends after its parent is reaped by nobody of ours
    watching = (cpu - read_cpu) / (whole - read_after)
    return {
        "steps": steps,
        "peak_pss_mb": taken.peak_pss >> 20,
        "at_peak_mb": taken.at_peak,
        "peak_rss_mb": taken.peak_rss >> 20,
        "history_read_s": round(read_after, 1),
        "history_read_cpu_s": round(read_cpu, 1),
        "cpu_share_reading": round(read_cpu / read_after, 4),
        "watched_s": round(whole - read_after, 1),
        "cpu_share_watching": round(watching, 4),
        "cpu_share_ten_minutes": round((read_cpu + watching * (TEN_MINUTES - read_after)) / TEN_MINUTES, 4),
        "best": best,
        "right": (int(steps * PEAK), HIGHEST),
    }


def _state(run: RunDir) -> str | None:
    try:
        return str(run.state()["state"])
    except OSError:
        return None


def main() -> None:
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 180.0
    with tempfile.TemporaryDirectory() as home:
        print(json.dumps(measure(steps, seconds, Path(home))))


if __name__ == "__main__":
    main()
