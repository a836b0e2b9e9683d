"""Many tasks on local and bubblewrap: nothing is left of them, even where their program was killed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.components import leave_out
from tests.tools.sandboxes.leftovers import nothing_left, rare_sleep, still_running
from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.kinds import make, usable
from tools.sandboxes.task_places import remove_places

AT_ONCE = 16
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(params=["local", "bubblewrap"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if why := usable(name):
        leave_out(f"{name} ({why})")
    return name


async def task(kind: str, number: int, turn: asyncio.Semaphore, sleep: str) -> None:
    async with turn:
        sandbox = make(SandboxConfig(kind=kind))
        await sandbox.start()
        try:
            command = f"(setsid {sleep} &); {sleep} & head -c 100000 /dev/zero >file; mkdir -m 0 closed"
            assert (await sandbox.run(f"{command}; echo {number}", 120)).stdout.text == f"{number}\n"
            if number % 5 == 0:
                assert (await sandbox.run(f"echo begun; {sleep}", 0.2)).timed_out
        finally:
            await sandbox.stop()


def run_tasks(kind: str, count: int) -> None:
    sleep = rare_sleep()

    async def main(tasks: int) -> None:
        turn = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(task(kind, number, turn, sleep) for number in range(tasks)))

    asyncio.run(main(1))
    with nothing_left():
        asyncio.run(main(count))
    assert not still_running(sleep)


def test_twenty_tasks_leave_nothing(kind: str) -> None:
    run_tasks(kind, 20)


@pytest.mark.soak
def test_five_hundred_tasks_leave_nothing(kind: str) -> None:
    began = time.monotonic()
    run_tasks(kind, 500)
    print(f"500 tasks on {kind}: {time.monotonic() - began:.0f} s")


def test_a_start_that_is_cancelled_leaves_nothing(kind: str) -> None:
    async def main() -> None:
        for milliseconds in range(0, 60, 3):
            remove_places()  # else nothing is made
            sandbox = make(SandboxConfig(kind=kind))
            starting = asyncio.create_task(sandbox.start())
            await asyncio.sleep(milliseconds / 1000)
            starting.cancel()
            await asyncio.wait({starting})
            if not starting.cancelled():
                await sandbox.stop()

    run_tasks(kind, 1)
    with nothing_left():
        asyncio.run(main())


def test_a_program_that_is_killed_leaves_no_process_and_its_folders_to_the_next(kind: str) -> None:
    sleep = rare_sleep()
    program = f"""
import asyncio
from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.kinds import make
async def main():
    sandbox, *others = [make(SandboxConfig(kind="{kind}")) for _ in range(6)]
    await asyncio.gather(*(made.start() for made in (sandbox, *others)))
    await sandbox.run("(setsid {sleep} &); {sleep} &", 60)
    print("there", flush=True)
    await sandbox.run("{sleep}", 600)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        [sys.executable, "-P", "-c", program], env=environment, stdout=subprocess.PIPE
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"there\n"
        killed.send_signal(signal.SIGKILL)
    assert not still_running(sleep)
    subprocess.run(
        [sys.executable, "-P", "-c", program.replace("600)", "0.01)")], env=environment, check=True
    )
    assert not list(Path(tempfile.gettempdir()).glob(f"rl-cli-*-{killed.pid}-*"))
    assert not list(Path("/sys/fs/cgroup").rglob(f"rl-cli-*-{killed.pid}-*"))
