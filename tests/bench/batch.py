"""How fast a batch is made: `python -P -m tests.bench.batch`.

Beside it runs a bare loop: the OpenAI SDK and `sh -c`, nothing else. Both ask the same server, which takes
50 ms for an answer: a call of the terminal, then the end. Runs take turns; figures are medians of ratios.
For bubblewrap there is a second bare loop, whose `sh -c` runs under `bwrap` with the flags of the sandbox.
"""

from __future__ import annotations

import asyncio
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tests.e2e.cli import command
from tools.sandboxes import bubblewrap
from tools.sandboxes.base import SandboxConfig

DELAY_SECONDS = 0.05
ROUNDS = 3
ITEMS = {4: 40, 64: 200}
"""In flight -> items of a run."""
NONE = "no sandbox"
"""The terminal is not offered, so that a call of it is answered at once with an error."""
MANY_ROWS = 200_000
TOOL = {
    "type": "function",
    "function": {
        "name": "terminal",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}},
    },
}


@dataclass
class Run:
    """What one process took, with all that it started."""

    seconds: float
    """From the first request to the end."""
    cpu: float
    """Of all, the start included."""
    peak_mib: float
    first: float
    """Seconds from its start to its first request."""


@contextmanager
def chat_server(delay: float = DELAY_SECONDS) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    words = [sys.executable, "-P", "-m", "tests.bench.chat_server", str(delay)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.stdin.close()


def measured(words: list[str], items: int, **environment: str) -> Run:
    """Runs a command against a server of its own; its address is `{url}` in the words."""
    with chat_server() as (url, server):
        began, monotonic = time.time(), time.monotonic()
        process = subprocess.Popen(
            [word.replace("{url}", url) for word in words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=os.environ | environment,
        )
        assert process.stderr
        said = process.stderr.read().decode()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.monotonic() - monotonic
        if process.returncode:
            raise SystemExit(f"{words[0]} ended with {process.returncode}: {said[-1000:]}")
        assert server.stdin
        assert server.stdout
        server.stdin.close()
        told = json.loads(server.stdout.readline())
    if told["requests"] != 2 * items:
        raise SystemExit(f"{told['requests']} requests for {items} items")
    first = told["first"] - began
    return Run(took - first, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, first)


def ours(input_: Path, items: int, in_flight: int, sandbox: str, home: Path) -> Run:
    words = ["data", "generate", "--input", str(input_), "--name", "b", "--model", "openai/m", "--yes"]
    offered = ["math"] if sandbox == NONE else ["terminal", "--sandbox", sandbox]
    words += ["--base-url", "{url}", "--toolsets", *offered]
    words += ["--concurrency", str(in_flight), "--max-samples", str(items)]
    return measured(command(*words), items, RL_CLI_HOME=str(home))


def bare(input_: Path, items: int, in_flight: int, before: Sequence[str] = ()) -> Run:
    """`before`: What stands before `sh -c` of each command."""
    words = [sys.executable, "-P", "-m", "tests.bench.batch", "bare", "{url}", str(input_)]
    return measured([*words, str(items), str(in_flight), *before], items)


async def bare_loop(url: str, prompts: list[str], in_flight: int, before: list[str]) -> None:
    """What a person would write in an hour."""
    import openai

    client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
    free = asyncio.Semaphore(in_flight)

    async def one(prompt: str) -> None:
        messages: list[Any] = [{"role": "user", "content": prompt}]
        async with free:
            while True:
                answer = await client.chat.completions.create(model="m", messages=messages, tools=[TOOL])  # type: ignore[call-overload]
                message = answer.choices[0].message
                messages.append(message.model_dump(exclude_none=True))
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    shell = await asyncio.create_subprocess_exec(
                        *before,
                        "sh",
                        "-c",
                        json.loads(call.function.arguments)["command"],
                        stdout=-1,
                        stderr=-1,
                    )
                    out, _ = await shell.communicate()
                    messages.append({"role": "tool", "content": out.decode(), "tool_call_id": call.id})

    await asyncio.gather(*(one(prompt) for prompt in prompts))


def write_rows(path: Path, count: int) -> None:
    with path.open("w") as file:
        for number in range(count):
            file.write(json.dumps({"prompt": f"Question {number}: what does echo print?"}) + "\n")


def under_bwrap() -> list[str]:
    """The words with which bubblewrap's own sandboxes are made, without its agent."""
    return [bubblewrap._program(), *bubblewrap._arguments(SandboxConfig("bubblewrap")), "--"]


@dataclass
class Compared:
    """A batch beside a bare loop: medians of the ratios of runs that took turns."""

    sandbox: str
    in_flight: int
    beside: str
    throughput: float
    """Of the bare loop's."""
    cpu: float
    """Times the bare loop's."""
    milliseconds: tuple[float, float]
    """CPU of an item, starts included: ours, the bare loop's."""

    def __str__(self) -> str:
        return (
            f"{self.sandbox}, {self.in_flight} in flight: throughput {self.throughput:.2f} of {self.beside}, "
            f"CPU {self.cpu:.2f} times its own "
            f"({self.milliseconds[0]:.1f} to {self.milliseconds[1]:.1f} ms an item, starts included)"
        )


def compare(folder: Path, sandbox: str, in_flight: int, before: Sequence[str] = ()) -> Compared:
    """
    Args:
        folder: An empty one.
        before: What the bare loop starts its shells with.
    """
    items = ITEMS[in_flight]
    input_ = folder / "rows.jsonl"
    write_rows(input_, items)
    pairs = []
    for round_ in range(ROUNDS):
        lone = bare(input_, items, in_flight, before)
        pairs.append((lone, ours(input_, items, in_flight, sandbox, folder / f"home-{round_}")))
    each = [1000 * statistics.median(run.cpu / items for run in runs) for runs in zip(*pairs, strict=True)]
    return Compared(
        sandbox,
        in_flight,
        "a bare loop's with bwrap" if before else "the bare loop's",
        statistics.median(b.seconds / o.seconds for b, o in pairs),
        statistics.median(o.cpu / b.cpu for b, o in pairs),
        (each[1], each[0]),
    )


@dataclass
class Start:
    """How a batch of MANY_ROWS begins, beside a bare loop."""

    first: float
    """Seconds to the first request."""
    sdk: float
    """Seconds that the import of the SDK takes."""
    more_mib: float
    """What its memory has at most, above that of the bare loop."""

    def __str__(self) -> str:
        return (
            f"of {MANY_ROWS:,} rows: first request after {self.first:.2f} s, "
            f"the SDK's import takes {self.sdk:.2f} s; "
            f"peak memory {self.more_mib:.0f} MiB above the bare loop's"
        )


def start_and_memory(folder: Path) -> Start:
    input_ = folder / "many.jsonl"
    write_rows(input_, MANY_ROWS)
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import openai"], check=True)
    sdk = time.monotonic() - began
    lone, full = bare(input_, 8, 4), ours(input_, 8, 4, "local", folder / "many")
    return Start(full.first, sdk, full.peak_mib - lone.peak_mib)


def compile_modules() -> None:
    """As an installation has them."""
    for package in ("rl_cli", "tools", "environments", "prompts"):
        compileall.compile_dir(package, quiet=1)


def main() -> None:
    compile_modules()
    cases = [(sandbox, ()) for sandbox in (NONE, "local", "bubblewrap")]
    for sandbox, before in [*cases, ("bubblewrap", under_bwrap())]:
        for in_flight in ITEMS:
            with tempfile.TemporaryDirectory() as folder:
                print(compare(Path(folder), sandbox, in_flight, before))
    with tempfile.TemporaryDirectory() as folder:
        print(start_and_memory(Path(folder)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["bare"]:
        with open(sys.argv[3]) as rows:
            asked = [json.loads(line)["prompt"] for line in islice(rows, int(sys.argv[4]))]
        asyncio.run(bare_loop(sys.argv[2], asked, int(sys.argv[5]), sys.argv[6:]))
    else:
        main()
