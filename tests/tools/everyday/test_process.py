"""Work in the background: started in the session's folder, looked after by its id."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.tools.everyday.boxes import Tools, every_kind, tools_in


async def until_ended(tools: Tools, id: str) -> dict[str, Any]:
    for _ in range(300):
        status = await tools.call("process", action="poll", id=id)
        if not status["running"]:
            return status
        await asyncio.sleep(0.1)
    raise AssertionError("it goes on and on")


@every_kind
def test_a_process_is_started_read_and_ended(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run("mkdir d; cd d; export GREETING=hello")
            started = await tools.call(
                "process", action="start", command='basename "$PWD"; echo $GREETING; exit 7'
            )
            assert (await until_ended(tools, started["id"]))["exit_code"] == 7
            log = await tools.call("process", action="log", id=started["id"])
            assert (log["output"], log["offset"], log["next"]) == ("d\nhello\n", 0, 8)
            assert (await tools.call("process", action="log", id=started["id"], offset=2))[
                "output"
            ] == "hello\n"
            slow = await tools.call("process", action="start", command="sleep 600")
            listed = (await tools.call("process", action="list"))["processes"]
            assert [each["command"] for each in listed] == [
                'basename "$PWD"; echo $GREETING; exit 7',
                "sleep 600",
            ]
            assert [each["running"] for each in listed] == [False, True]
            await tools.call("process", action="kill", id=slow["id"])
            assert not (await until_ended(tools, slow["id"]))["running"]

    asyncio.run(main())


@every_kind
def test_an_unknown_process_is_answered_with_the_known_ones(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            assert "none was started" in (await tools.error("process", action="poll", id="x"))[1]
            id = (await tools.call("process", action="start", command="true"))["id"]
            kind_of_error, said = await tools.error("process", action="log", id="x")
            assert kind_of_error == "unknown_process"
            assert id in said
            assert (await tools.error("process", action="start", command=" "))[0] == "invalid_arguments"

    asyncio.run(main())
