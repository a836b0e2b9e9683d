"""Batches that are killed at random moments, and gone on with until they are whole."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.folder import batch_folder
from tests.data.generation.batches import agent, config, entries, prompts_done, seeds_asked
from tests.wire.server import Answer, Reply, Request, WireServer

BETWEEN = Callable[[], None]
"""What happens to the batch between a kill and the next start."""
_processes = multiprocessing.get_context("forkserver")
_processes.set_forkserver_preload(["tests.data.generation.kills", "rl_cli.data.batch_runner", "openai"])


@dataclass
class Report:
    """What a provider saw of a batch that was killed again and again."""

    kills: int = 0
    repeated: int = 0
    """Conversations that were begun for samples that had ended before the start."""
    ended_at: list[int] = field(default_factory=list)
    """Samples that had ended at each kill."""


def slow_agent(request: Request) -> Answer:
    reply = agent(request)
    assert isinstance(reply, Reply)
    return Reply(reply.text, reply.calls, reply.reasoning, delay=0.005)


def start(settings: dict[str, Any], home: str) -> None:
    """In a process of its own: makes the batch; its exit code is the batch's."""
    from rl_cli.core.errors import RlCliError
    from rl_cli.data.batch_runner import run_batch

    os.environ["RL_CLI_HOME"] = home
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - the process's own
    try:
        code = run_batch(BatchConfig.model_validate(settings)).exit_code
    except RlCliError as error:
        code = error.exit_code
    sys.exit(code)


def killed_again_and_again(
    input_: Path,
    home: Path,
    kills: int,
    requests: int,
    seed: int,
    between: BETWEEN = lambda: None,
    **settings: Any,
) -> Report:
    """Kills the batch `kills` times, each time after some of about `requests` more, and then lets it end."""
    rng, report = random.Random(seed), Report()
    with WireServer(slow_agent) as server:
        batch = config(input_, server, **settings)
        while True:
            ended = {seed for entry in entries() if (seed := _seed(entry)) is not None}
            since = len(server.requests)
            until = None if report.kills == kills else since + rng.randrange(requests)
            code = run(batch, home, server, until)
            report.repeated += sum(seeds_asked(server, since)[seed] for seed in ended)
            if code != -9:
                assert code == 0, code
                assert report.kills == kills, f"only {report.kills} kills: it ended first"
                return report
            report.kills += 1
            report.ended_at.append(len(entries()))
            between()


def run(batch: BatchConfig, home: Path, server: WireServer, until: int | None) -> int | None:
    """One start, killed once the server has had `until` requests. Returns its exit code."""
    process = _processes.Process(target=start, args=(batch.model_dump(), str(home)))
    process.start()
    while process.is_alive() and (until is None or len(server.requests) < until):
        time.sleep(0.002)
    if until is not None and len(server.requests) >= until:
        process.kill()
    process.join()
    return process.exitcode


def _seed(entry: Any) -> int | None:
    return entry["row"]["sampling"]["seed"] if entry["row"] else None


def whole(expected: Counter[str]) -> None:
    """Each prompt as often as it is wanted, each sample once."""
    keys = Counter(entry["key"] for entry in entries())
    assert max(keys.values()) == 1
    assert prompts_done() == expected
    assert batch_folder("b").state()["state"] == "finished"
