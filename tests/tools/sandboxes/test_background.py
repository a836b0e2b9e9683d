"""Processes in the background of a sandbox: started, looked at, read, ended."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.tools.sandboxes.leftovers import comes_to_run, rare_sleep, still_running
from tests.tools.sandboxes.places import DEADLINE, Place
from tools.sandboxes.base import ProcessStatus, Sandbox


async def until_ended(made: Sandbox, id: str) -> ProcessStatus:
    ends = time.monotonic() + DEADLINE
    while True:
        status = {process.id: process for process in await made.processes()}[id]
        if not status.running:
            return status
        assert time.monotonic() < ends
        await asyncio.sleep(0.1)


def test_a_process_is_started_read_and_over(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        await made.run("mkdir 'a folder'", DEADLINE)
        command = "echo out; echo err >&2; cat; echo \"$WORD\"; pwd | sed 's|.*/||'; exit 7"
        id = await made.start_process(command, cwd="a folder", env={"WORD": "it's"})
        status = await until_ended(made, id)
        assert (status.command, status.exit_code, status.running) == (command, 7, False)
        text = b"out\nerr\nit's\na folder\n"
        assert await made.read_process(id) == text
        assert await made.read_process(id, offset=4, limit=3) == b"err"
        assert await made.read_process(id, offset=1000) == b""
        assert status.size == len(text)

    place.check(test)


def test_it_runs_on_while_commands_come_and_go_and_is_killed_with_all_it_started(place: Place) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        id = await made.start_process(f"echo begin; setsid {sleep} & {sleep}")
        other = await made.start_process(f"{sleep}9")
        for _ in range(3):
            await made.run("true", DEADLINE)
        first, second = await made.processes()
        assert [first.id, second.id] == [id, other]
        assert first.running
        assert second.running
        assert await made.read_process(id) == b"begin\n"
        await made.kill_process(id)
        first, second = await made.processes()
        assert (first.running, first.exit_code, second.running) == (False, 137, True)
        assert still_running(sleep) == []
        await made.kill_process(id)

    place.check(test)
    assert still_running(f"{sleep}9") == []


def test_an_unknown_process_is_a_key_error(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        assert await made.processes() == []
        with pytest.raises(KeyError):
            await made.read_process("nosuch")
        with pytest.raises(KeyError):
            await made.kill_process("nosuch")

    place.check(test)


def test_a_process_of_which_nobody_is_left_is_over(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        id = await made.start_process("kill -9 $PPID $$")
        assert (await until_ended(made, id)).exit_code == 137

    place.check(test)


def test_many_are_kept_apart(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        ids = await asyncio.gather(*(made.start_process(f"echo {number}") for number in range(4)))
        for number, id in enumerate(ids):
            await until_ended(made, id)
            assert await made.read_process(id) == f"{number}\n".encode()

    place.check(test)


@pytest.mark.parametrize(
    "damage",
    [
        "echo a b c >$1.end",
        "echo nan nan >$1.end",
        "rm $1.end; mkfifo $1.end; echo >$1.pid",
        "rm $1.log; mkfifo $1.log",
        "echo >$1.end; rm $1.log",
    ],
)
def test_a_damaged_record_is_said_of_its_process_alone(place: Place, damage: str) -> None:
    async def test(made: Sandbox) -> None:
        id, other = [await made.start_process(f"exit {code}") for code in (3, 4)]
        await until_ended(made, id)
        await until_ended(made, other)
        await made.run(f"cd {made.private}/background; set -- {id}; {damage}", DEADLINE)
        first, second = await made.processes()
        assert (first.running, first.exit_code, second.exit_code) == (False, None, 4)
        assert await made.read_process(id) == b""
        await made.run(f"rm -rf {made.private}/background", DEADLINE)
        assert [(each.running, each.exit_code) for each in await made.processes()] == 2 * [(False, None)]
        third = await made.start_process("exit 5")
        assert (await until_ended(made, third)).exit_code == 5

    place.check(test)


def test_a_process_that_hid_from_its_variables_is_killed(place: Place) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        id = await made.start_process(f"(env -i PATH=$PATH setsid sh -c '{sleep}' &); {sleep}")
        await asyncio.to_thread(comes_to_run, sleep)
        await made.kill_process(id)
        assert still_running(sleep) == []

    place.check(test)
