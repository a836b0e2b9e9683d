"""Batches for tests: a provider on the wire, an input, the batch made in this process or by the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rl_cli.data.batch.config import BatchConfig
from rl_cli.data.batch.entries import Damage, Entry, read_entries
from rl_cli.data.batch.folder import batch_folder
from rl_cli.data.batch_runner import Ended, run_batch
from rl_cli.data.generation.stopping import Stopping
from tests.e2e.cli import command
from tests.wire.server import Answer, Call, Refusal, Reply, Request, WireServer

CALL = Call("calculator", {"expression": "6 * 7"})
FAILS = Refusal(500, "it broke", headers={"x-should-retry": "false"})
"""Without the attempts that a policy makes by itself."""


def agent(request: Request) -> Answer:
    """A call of the calculator, then an answer that repeats the question."""
    if request.body["messages"][-1]["role"] == "tool":
        return Reply(f"done: {question(request)}", reasoning="it is 42")
    return Reply(calls=[CALL], reasoning="I compute")


def question(request: Request) -> str:
    """What the person said last."""
    return next(str(m["content"]) for m in reversed(request.body["messages"]) if m["role"] == "user")


def write_prompts(path: Path, prompts: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    return path


def config(input_: Path, server: WireServer, **settings: Any) -> BatchConfig:
    given = {"name": "b", "model": "openai/m", "toolsets": ["math"], "sandbox": {"kind": "local"}}
    return BatchConfig.model_validate(
        {**given, "input": str(input_), "base_url": server.openai_url, **settings}
    )


def make(input_: Path, server: WireServer, **settings: Any) -> Ended:
    """Makes a batch in this process, without its signals."""
    return run_batch(config(input_, server, **settings), stopping=Stopping())


def entries(name: str = "b") -> list[Entry]:
    return [entry for _, entry in read_entries(batch_folder(name).ledger, Damage())]


def rows(name: str = "b") -> list[Any]:
    return [entry["row"] for entry in entries(name) if entry["state"] == "done"]


def prompts_done(name: str = "b") -> Counter[str]:
    return Counter(next(m["content"] for m in row["messages"] if m["role"] == "user") for row in rows(name))


def seeds_asked(server: WireServer, since: int = 0) -> Counter[int]:
    """The seed of a sample, which tells it from all others -> how many conversations were begun with it."""
    whole = (r for r in server.requests[since:] if "messages" in r.body)  # a kill cuts some off
    begun = (r for r in whole if r.body["messages"][-1]["role"] == "user")
    return Counter(request.body["seed"] for request in begun)


def words(input_: Path, server: WireServer, *more: str) -> list[str]:
    """The command that makes a batch."""
    given = ["--name", "b", "--model", "openai/m", "--base-url", server.openai_url, "--yes"]
    given += ["--toolsets", "math", "--sandbox", "local"]
    return command("data", "generate", "--input", str(input_), *given, *more)


def killed_after(argv: list[str], home: Path, is_time: Callable[[], bool], name: int = signal.SIGKILL) -> int:
    """Starts a command, and sends it a signal once it is time. Returns its exit code."""
    environment = os.environ | {"RL_CLI_HOME": str(home)}
    process = subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, start_new_session=True
    )
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            if is_time():
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, name)
                return

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        return process.wait(120)
    finally:
        over.set()
        watcher.join()
        if process.poll() is None:
            process.kill()
