"""A place of local that was left clean is the next task's: nothing of the one before is or runs in it."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.components import leave_out
from tests.tools.sandboxes.leftovers import nothing_left, rare_sleep, still_running
from tests.tools.sandboxes.places import agents
from tools.sandboxes import task_places
from tools.sandboxes.agent.leaving import MOST_CHARGED
from tools.sandboxes.base import Resources, SandboxConfig
from tools.sandboxes.kinds import usable
from tools.sandboxes.local import Local

SECONDS = 30.0
STATE = "echo $PPID; cd ..; ls -A . *; ulimit -a | grep -v rttime; umask; ls /proc/self/fd"


@pytest.fixture(autouse=True)
def _only_own() -> Iterator[None]:
    if why := usable("local"):
        leave_out(f"local ({why})")
    asyncio.run(agent())  # the process that forks agents is there, then
    task_places.remove_places()
    yield
    task_places.remove_places()


async def one_task(*commands: str, **config: object) -> list[str]:
    """What each of its commands says."""
    sandbox = Local(SandboxConfig("local", **config))  # type: ignore[arg-type]
    await sandbox.start()
    try:
        return [(await sandbox.run(command, SECONDS)).stdout.text for command in commands]
    finally:
        await sandbox.stop()


async def agent() -> int:
    return int((await one_task("echo $PPID"))[0])


@pytest.mark.parametrize(
    "command",
    [
        "echo x >f; export A=b; umask 0; ulimit -n 99; cd /",
        "mkdir -p d/e; echo x >d/e/f",
        "{sleep} & (setsid {sleep} &)",
        "(trap '' PIPE; while echo x; do :; done) & echo",
    ],
    ids=["state", "folders", "processes", "output"],
)
def test_nothing_of_a_task_is_seen_by_the_next_in_its_place(command: str) -> None:
    sleep = rare_sleep()

    async def main() -> None:
        fresh = await one_task("env | grep -v RL_CLI_SANDBOX", STATE)
        await one_task(command.format(sleep=sleep))
        assert not await asyncio.to_thread(still_running, sleep)
        again = await one_task("env | grep -v RL_CLI_SANDBOX", STATE)
        assert again[1] == fresh[1]
        homes = [line for line in fresh[0].splitlines() if line not in again[0]]
        assert {line.partition("=")[0] for line in homes} <= {"HOME", "TMPDIR", "PWD"}

    with nothing_left():
        asyncio.run(main())


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_an_agent_that_was_stopped_between_tasks_goes_on_and_a_killed_one_is_not_used(number: int) -> None:
    async def main() -> None:
        first = await agent()
        os.kill(first, number)
        await asyncio.to_thread(
            psutil.wait_procs, [psutil.Process(first)], 1 if number == signal.SIGKILL else 0
        )
        assert (await agent() == first) == (number == signal.SIGSTOP)
        await agent()

    with nothing_left():
        asyncio.run(main())


def test_a_task_with_other_limits_has_another_place() -> None:
    async def main() -> None:
        first = await agent()
        more = Resources(memory_mib=4096, processes=600)
        pid, data = (await one_task("echo $PPID; ulimit -d", resources=more))[0].split()
        assert int(pid) != first
        assert int(data) == 4096 * 1024
        assert await agent() == first

    asyncio.run(main())


def test_control_groups_in_which_something_runs_are_not_the_nexts() -> None:
    async def main(stranger: int) -> None:
        sandbox = Local(SandboxConfig("local"))
        await sandbox.start()
        groups = sandbox._group.folders
        if not groups:
            await sandbox.stop()
            leave_out("control groups (none can be made)")
        (groups[0] / "cgroup.procs").write_text(str(stranger))
        pid = int((await sandbox.run("echo $PPID", SECONDS)).stdout.text)
        await sandbox.stop()
        assert await agent() != pid

    with subprocess.Popen(["sleep", "60"]) as other:
        asyncio.run(main(other.pid))
        other.kill()


def test_a_file_in_memory_that_a_task_leaves_elsewhere_does_not_count_for_the_next() -> None:
    left = f"/dev/shm/{secrets.token_hex(8)}"

    async def main() -> None:
        fill = f"head -c {2 * MOST_CHARGED} /dev/zero >{left}"
        said, groups = await one_task(f"echo $PPID; {fill}", "cat /proc/self/cgroup")
        if not re.search("memory:.*rl-cli|^0::.*rl-cli", groups, re.MULTILINE):
            leave_out("control groups of memory (none can be made)")
        assert await agent() != int(said)

    try:
        asyncio.run(main())
    finally:
        Path(left).unlink(missing_ok=True)


def test_places_that_nobody_has_needed_lately_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        made = [Local(SandboxConfig("local")) for _ in range(3)]
        for sandbox in made:
            await sandbox.start()
        for sandbox in made:
            await sandbox.stop()
        assert len(agents("local")) == 3
        monkeypatch.setattr(task_places, "IDLE_SECONDS", 0)
        last = await agent()
        assert set(agents("local")) <= {last}

    asyncio.run(main())
