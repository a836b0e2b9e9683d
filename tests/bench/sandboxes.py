"""What a command costs in a sandbox: `python -P -m tests.bench.sandboxes`.

Rollouts run short commands at the same time, each one after the other: in sandboxes of their own, bare
(`sh -c`), and bare in bubblewrap (`bwrap ... sh -c`). Rounds take turns. How long the event loop was kept
from its other work is measured in the same run, starts and stops included.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.sharedctypes import Synchronized

from tools.sandboxes.base import Sandbox, SandboxConfig
from tools.sandboxes.kinds import make, usable

ROLLOUTS = 64
COMMANDS = 3
"""Of each rollout, in a round."""
ROUNDS = 5
COMMAND = "echo hi"
BARE_BUBBLEWRAP = (
    *(
        "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--ro-bind",
        "/",
        "/",
        "--proc",
        "/proc",
        "--dev",
        "/dev",
    ),
    *("--tmpfs", "/tmp", "--"),
)
TICK = 0.001


class Blocks:
    """How long the event loop did not come back to a task that only waits, at most; in seconds.

    Attributes:
        late: Beyond the task's wait, by the clock.
        busy: Of that, the time in which the loop's thread really worked.
    """

    def __init__(self) -> None:
        self.late = self.busy = 0.0

    async def watch(self) -> None:
        while True:
            began, worked = time.monotonic(), time.thread_time()
            await asyncio.sleep(TICK)
            self.late = max(self.late, time.monotonic() - began - TICK)
            self.busy = max(self.busy, time.thread_time() - worked)


def only_wait(late: Synchronized[float]) -> None:
    """What a process of its own sees that waits as the event loop's task does: how busy the machine is."""
    while True:
        began = time.monotonic()
        time.sleep(TICK)
        late.value = max(late.value, time.monotonic() - began - TICK)


async def bare(*argv: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert output == b"hi\n", output


async def in_sandbox(sandbox: Sandbox) -> None:
    assert (await sandbox.run(COMMAND, 60)).stdout.data == b"hi\n"


async def per_command(runs: Sequence[Callable[[], Awaitable[None]]]) -> float:
    """Seconds per command, all of these at the same time."""

    async def rollout(run: Callable[[], Awaitable[None]]) -> None:
        for _ in range(COMMANDS):
            await run()

    began = time.monotonic()
    await asyncio.gather(*(rollout(run) for run in runs))
    return (time.monotonic() - began) / (len(runs) * COMMANDS)


@dataclass(frozen=True)
class Figures:
    """Of one kind of sandbox. Times in seconds."""

    kind: str
    rollouts: int
    program: str
    """What runs the same command bare."""
    bare: float
    """Per command."""
    sandbox: float
    blocks: Blocks
    bare_blocks: Blocks
    elsewhere: float
    """How late a process was that only waits."""

    @property
    def ratio(self) -> float:
        return self.sandbox / self.bare

    def __str__(self) -> str:
        bare, late = self.bare_blocks, 1000 * self.blocks.late
        return (
            f"{self.kind}, {self.rollouts} at once: {1000 * self.sandbox:.2f} ms per command, "
            f"{self.ratio:.2f} times bare {self.program} ({1000 * self.bare:.2f} ms); the event loop worked "
            f"for at most {1000 * self.blocks.busy:.0f} ms on end (bare {1000 * bare.busy:.0f}), "
            f"and was late by at most {late:.0f} ms (bare {1000 * bare.late:.0f}, "
            f"another process {1000 * self.elsewhere:.0f})"
        )


async def measure(kind: str, rollouts: int, elsewhere: Synchronized[float]) -> Figures:
    """Measures one kind of sandbox."""
    argv = ("sh", "-c", COMMAND) if kind == "local" else (*BARE_BUBBLEWRAP, "sh", "-c", COMMAND)
    sandboxes = [make(SandboxConfig(kind=kind)) for _ in range(rollouts)]
    ours = [partial(in_sandbox, sandbox) for sandbox in sandboxes]
    theirs = [partial(bare, *argv)] * rollouts
    blocks, bare_blocks = Blocks(), Blocks()
    elsewhere.value = 0.0
    watching = asyncio.create_task(blocks.watch())
    await asyncio.gather(*(sandbox.start() for sandbox in sandboxes))
    watching.cancel()
    bare_times: list[float] = []
    sandbox_times: list[float] = []
    for _ in range(ROUNDS):
        for times, watched, runs in ((bare_times, bare_blocks, theirs), (sandbox_times, blocks, ours)):
            watching = asyncio.create_task(watched.watch())
            times.append(await per_command(runs))
            watching.cancel()
    watching = asyncio.create_task(blocks.watch())
    await asyncio.gather(*(sandbox.stop() for sandbox in sandboxes))
    watching.cancel()
    return Figures(
        kind,
        rollouts,
        argv[0],
        statistics.median(bare_times),
        statistics.median(sandbox_times),
        blocks,
        bare_blocks,
        elsewhere.value,
    )


def figures(kind: str) -> Iterator[Figures]:
    """Of one rollout, and of many at once."""
    elsewhere: Synchronized[float] = multiprocessing.Value("d", 0.0)
    waiting = multiprocessing.Process(target=only_wait, args=(elsewhere,), daemon=True)
    waiting.start()
    try:
        for rollouts in (1, ROLLOUTS):
            yield asyncio.run(measure(kind, rollouts, elsewhere))
    finally:
        waiting.terminate()


def main() -> None:
    for kind in ("local", "bubblewrap"):
        if why := usable(kind):
            print(f"{kind}: cannot be used here: {why}")
            continue
        for measured in figures(kind):
            print(measured, flush=True)


if __name__ == "__main__":
    main()
