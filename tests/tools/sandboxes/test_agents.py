"""Agents of local are forks of one process: what becomes of tasks when it ends, or one of them does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.components import leave_out
from tests.tools.sandboxes.leftovers import nothing_left, rare_sleep, still_running
from tests.tools.sandboxes.places import agents
from tools.sandboxes.agent import protocol
from tools.sandboxes.base import Sandbox, SandboxConfig
from tools.sandboxes.kinds import make, usable
from tools.sandboxes.task_places import remove_places

REPOSITORY = Path(__file__).parents[3]
SECONDS = 30.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture(autouse=True)
def _needs_local() -> None:
    if why := usable("local"):
        leave_out(f"local ({why})")
    remove_places()


async def started() -> Sandbox:
    made = make(SandboxConfig("local"))
    await made.start()
    return made


def nursery() -> int:
    """The process that forks them."""
    return next(p.pid for p in psutil.Process().children() if "from agent.nursery" in " ".join(p.cmdline()))


def test_tasks_go_on_and_others_begin_when_the_process_that_forks_agents_is_killed() -> None:
    sleep = rare_sleep()

    async def main() -> None:
        first = await started()
        os.kill(nursery(), signal.SIGKILL)
        assert (await first.run(f"{sleep} & echo hi", SECONDS)).stdout.text == "hi\n"
        second = await started()
        assert (await second.run("echo hi", SECONDS)).stdout.text == "hi\n"
        await asyncio.gather(first.stop(), second.stop())

    asyncio.run(main())
    assert not still_running(sleep)


def test_a_killed_agent_leaves_nothing_though_its_mark_was_dropped() -> None:
    sleep = rare_sleep()

    async def main() -> None:
        other, made = await started(), await started()
        await made.run(f"env -i setsid {sleep} & echo", SECONDS)
        os.kill(agents("local")[-1], signal.SIGKILL)
        assert not await asyncio.to_thread(still_running, sleep)
        assert (await other.run("echo hi", SECONDS)).stdout.text == "hi\n"
        await asyncio.gather(made.stop(), other.stop())

    asyncio.run(main())


def test_an_agent_that_a_command_has_stopped_ends_with_its_program() -> None:
    sleep = rare_sleep()
    program = f"""
import asyncio
from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.kinds import make
async def main():
    made = make(SandboxConfig("local"))
    await made.start()
    running = asyncio.create_task(made.run("{sleep} & kill -STOP $PPID; echo there >&2; {sleep}", 600))
    await asyncio.sleep(0.3)
    print("there", flush=True)
    await running
asyncio.run(main())
"""
    words = [sys.executable, "-P", "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"there\n"
        killed.kill()
    assert not still_running(sleep)


def test_a_program_that_stops_nothing_leaves_nothing() -> None:
    sleep = rare_sleep()
    program = f"""
import asyncio
from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.kinds import make
async def main():
    made = make(SandboxConfig("local"))
    await made.start()
    await made.run("(setsid {sleep} &) ; {sleep} & echo", 60)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    subprocess.run([sys.executable, "-P", "-c", program], env=environment, check=True)
    assert not still_running(sleep)


def test_a_program_that_ends_waits_for_what_it_has_started() -> None:
    async def main() -> None:
        made = await started()
        await made.stop()

    asyncio.run(main())
    with nothing_left():
        asyncio.run(main())


@pytest.mark.parametrize("size", [0, 100, protocol.LONGEST_MESSAGE, 300_000])
def test_a_body_arrives_whole_whether_it_fits_a_packet_or_not(size: int) -> None:
    body = {"command": "é\udcff" + "x" * size, "env": {"A": "b"}}
    data, descriptors = protocol.packet(protocol.RUN, 7, body)
    assert len(data) <= protocol.LONGEST_MESSAGE
    assert protocol.HEAD.unpack_from(data) == (protocol.RUN, 7, 0)
    assert protocol.body_of(data, descriptors) == body
    assert descriptors == []
