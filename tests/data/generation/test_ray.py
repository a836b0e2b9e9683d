"""Batches on a Ray cluster of this machine."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from rl_cli.spending.ledger import Ledger
from tests.components import leave_out
from tests.data.generation.batches import (
    FAILS,
    agent,
    entries,
    prompts_done,
    rows,
    seeds_asked,
    words,
    write_prompts,
)
from tests.data.generation.kills import slow_agent, whole
from tests.wire.server import WireServer

pytestmark = [pytest.mark.waits, pytest.mark.xdist_group("ray")]  # one kills the workers that it finds


@pytest.fixture(autouse=True)
def _ray() -> None:
    if importlib.util.find_spec("ray") is None:
        leave_out("the ray extra (pip install 'rl-flywheel[ray]')")


def _made(argv: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"RL_CLI_HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=300, check=False)


def _actors(after: set[int]) -> Iterator[psutil.Process]:
    """Processes of actors that were started since."""
    for process in psutil.process_iter(["pid", "cmdline"]):
        words = process.info["cmdline"] or [""]
        if process.info["pid"] not in after and words[0].startswith("ray::Worker"):
            yield process


@pytest.mark.parametrize(
    ("count", "kills"),
    [
        pytest.param(30, 1, id="small"),
        pytest.param(300, 4, id="full", marks=pytest.mark.soak),
    ],
)
def test_a_worker_that_is_killed_loses_nothing(tmp_path: Path, home: Path, count: int, kills: int) -> None:
    prompts = [f"p{n}" for n in range(count)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    before, killed = set(psutil.pids()), 0
    with WireServer(slow_agent) as server:
        over = threading.Event()

        def kill() -> None:
            nonlocal killed
            while killed < kills and not over.wait(0.01):
                if len(server.requests) < (killed + 1) * count // (kills + 1):
                    continue
                if (actor := next(_actors(before), None)) is not None:
                    actor.kill()
                    before.add(actor.pid)
                    killed += 1

        killer = threading.Thread(target=kill)
        killer.start()
        done = _made(words(input_, server, "--executor", "ray", "--concurrency", "4"), home)
        over.set()
        killer.join()
        assert done.returncode == 0, done.stderr
        asked = seeds_asked(server)
    assert killed == kills
    whole(Counter(prompts))
    with Ledger(home).looking() as books:
        spent = books.totals("session", "batch-b").spent.tokens
    used = sum(row["usage"]["input_tokens"] + row["usage"]["output_tokens"] for row in rows())
    assert used * 0.5 < spent, "what the killed had not written yet is missing"
    assert spent <= used * 1.5
    assert asked.total() - len(asked) <= 4 * kills, "only what the killed had in hand is asked again"


@pytest.mark.soak
def test_a_provider_that_fails_everything_marks_nothing(tmp_path: Path, home: Path) -> None:
    prompts = [f"p{n}" for n in range(12)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    with WireServer(lambda request: FAILS) as server:
        done = _made(words(input_, server, "--executor", "ray", "--concurrency", "4"), home)
        assert (done.returncode, entries()) == (1, [])
        assert "it broke" in done.stderr
        server.set(agent)
        again = _made(words(input_, server), home)  # by the other executor
    assert again.returncode == 0, again.stderr
    assert prompts_done() == Counter(prompts)
    assert not _left_within(10)


@pytest.mark.soak
def test_workers_that_all_die_mark_nothing(tmp_path: Path, home: Path) -> None:
    prompts = [f"p{n}" for n in range(4)]
    input_ = write_prompts(tmp_path / "in.jsonl", prompts)
    before, over = set(psutil.pids()), threading.Event()

    def kill_all() -> None:
        while not over.wait(0.02):
            for actor in list(_actors(before)):
                with suppress(psutil.NoSuchProcess):
                    actor.kill()

    killer = threading.Thread(target=kill_all)
    killer.start()
    with WireServer(agent) as server:
        done = _made(words(input_, server, "--executor", "ray", "--give-up-after", "3"), home)
        over.set()
        killer.join()
        assert (done.returncode, entries()) == (1, []), done.stderr
        assert "WorkerDied" in done.stderr
        assert _made(words(input_, server), home).returncode == 0
    assert prompts_done() == Counter(prompts)


def _left_within(seconds: float) -> list[str]:
    until = time.monotonic() + seconds
    while (left := [p.name() for p in _actors(set())]) and time.monotonic() < until:
        time.sleep(0.1)
    return left
