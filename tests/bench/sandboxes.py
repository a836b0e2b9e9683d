"""What a command costs in a sandbox: `python -P -m tests.bench.sandboxes`.

Rollouts run short commands at the same time, each one after the other: in sandboxes of their own, bare
(`sh -c`), and bare in bubblewrap (`bwrap ... sh -c`). Rounds take turns. The longest that the event loop was
kept from its other work is measured in the same run.
"""

from __future__ import annotations

import asyncio
import shutil
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

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
    """The longest time by which the event loop came back too late to a task that only waits."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            began = time.monotonic()
            await asyncio.sleep(TICK)
            self.longest = max(self.longest, time.monotonic() - began - TICK)


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


async def measure(kind: str, rollouts: int) -> tuple[float, float, float]:
    """Milliseconds per command, bare and in sandboxes, and of the longest block of the event loop."""
    argv = ("sh", "-c", COMMAND) if kind == "local" else (*BARE_BUBBLEWRAP, "sh", "-c", COMMAND)
    blocks = Blocks()
    watching = asyncio.create_task(blocks.watch())
    sandboxes = [make(SandboxConfig(kind=kind)) for _ in range(rollouts)]
    await asyncio.gather(*(sandbox.start() for sandbox in sandboxes))
    ours = [partial(in_sandbox, sandbox) for sandbox in sandboxes]
    theirs = [partial(bare, *argv)] * rollouts
    bare_times, sandbox_times, longest = [], [], blocks.longest
    for _ in range(ROUNDS):
        bare_times.append(await per_command(theirs))
        await asyncio.sleep(0)
        blocks.longest = 0.0
        sandbox_times.append(await per_command(ours))
        longest = max(longest, blocks.longest)
    blocks.longest = 0.0
    await asyncio.gather(*(sandbox.stop() for sandbox in sandboxes))
    watching.cancel()
    return (
        1000 * statistics.median(bare_times),
        1000 * statistics.median(sandbox_times),
        1000 * max(longest, blocks.longest),
    )


def main() -> None:
    for kind, beside in (("local", "bare sh -c"), ("bubblewrap", "bare bwrap ... sh -c")):
        if (why := usable(kind)) or not shutil.which("sh"):
            print(f"{kind}: cannot be used here: {why}")
            continue
        for rollouts in (1, ROLLOUTS):
            bare_ms, sandbox_ms, longest = asyncio.run(measure(kind, rollouts))
            print(
                f"{kind}, {rollouts} at once: {sandbox_ms:.2f} ms per command, "
                f"{sandbox_ms / bare_ms:.2f} times {beside} ({bare_ms:.2f} ms); "
                f"event loop blocked for at most {longest:.0f} ms"
            )


if __name__ == "__main__":
    main()
