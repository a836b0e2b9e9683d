"""A task's sandbox: made when first used, the same for all calls, gone at the task's end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from environments.tool_context import ToolContext
from tests.tools.everyday.boxes import Tools, tools_in
from tools.everyday.task_sandbox import TaskSandbox
from tools.sandboxes.base import Sandbox, SandboxConfig, SandboxError
from tools.sandboxes.local import Local


class Counted:
    """Makes local sandboxes and counts them."""

    def __init__(self, fail: str | None = None) -> None:
        self.made: list[Sandbox] = []
        self.fail = fail

    def __call__(self) -> Sandbox:
        self.made.append(Local(SandboxConfig("local")))
        if self.fail:
            raise SandboxError(self.fail, "mend it")
        return self.made[-1]


def test_nothing_is_made_before_it_is_used_and_one_for_all_calls() -> None:
    async def main() -> None:
        make = Counted()
        sandbox = TaskSandbox(make)
        tools = Tools(sandbox)
        assert (await tools.error("patch"))[0] in ("invalid_arguments", "sandbox")
        await asyncio.gather(*(tools.run(f"echo {n} >f{n}") for n in range(8)))
        assert (await tools.run("cat f*")).split() == [str(n) for n in range(8)]
        assert len(make.made) == 1
        await sandbox.stop()
        await sandbox.stop()
        assert not await make.made[0].alive()
        kind, said = await tools.error("terminal", command="true")
        assert (kind, "over" in said) == ("sandbox", True)

    asyncio.run(main())


def test_what_no_command_can_be_is_an_ordinary_error() -> None:
    async def main() -> None:
        async with tools_in("local") as tools:
            for bad in ("echo a\0b", "echo \ud800"):
                assert (await tools.error("terminal", command=bad))[0] == "invalid_arguments"
                assert (await tools.error("process", action="start", command=bad))[0] == "invalid_arguments"
            assert await tools.run("echo hi") == "hi\n"

    asyncio.run(main())


def test_a_task_that_uses_none_makes_none() -> None:
    async def main() -> None:
        make = Counted()
        await TaskSandbox(make).stop()
        assert make.made == []

    asyncio.run(main())


def test_a_start_that_fails_is_said_by_every_call_and_tried_once() -> None:
    async def main() -> None:
        make = Counted(fail="there is no engine")
        tools = Tools(TaskSandbox(make))
        for _ in range(3):
            assert await tools.error("terminal", command="true") == (
                "sandbox",
                "there is no engine | mend it",
            )
        assert len(make.made) == 1
        await tools.sandbox.stop()

    asyncio.run(main())


def test_a_cancelled_call_does_not_end_the_start_for_others() -> None:
    async def main() -> None:
        make = Counted()
        tools = Tools(TaskSandbox(make))
        first = asyncio.create_task(tools.run("true"))
        await asyncio.sleep(0)
        first.cancel()
        assert await tools.run("echo here") == "here\n"
        assert len(make.made) == 1
        await tools.sandbox.stop()

    asyncio.run(main())


def test_without_a_sandbox_the_tools_say_so() -> None:
    async def main() -> None:
        async with tools_in("local") as tools:
            tools.context.sandbox = None
            assert (await tools.error("terminal", command="true"))[0] == "no_sandbox"
            assert (await tools.error("read_file", path="x"))[0] == "no_sandbox"

    asyncio.run(main())


@pytest.mark.parametrize(
    "task_id", ["../../etc/cron.d/x", "a/../../b", "/abs", "", ".", "CON", "x" * 300, "a\0b"]
)
def test_sec_05_a_task_id_is_never_a_path(task_id: str) -> None:
    """It names no folder: whatever it is, the task has a place of its own, with a name of ours."""

    async def main() -> None:
        contexts = [ToolContext(task_id, config=SandboxConfig("local")) for _ in range(2)]
        places = []
        for ctx in contexts:
            places.append(Path((await ctx.terminal("pwd"))["stdout"].strip()))
            assert task_id in ("", ".") or task_id not in str(places[-1])
        assert places[0] != places[1]
        for ctx in contexts:
            await ctx.cleanup()
        assert not any(place.exists() for place in places)

    asyncio.run(main())
