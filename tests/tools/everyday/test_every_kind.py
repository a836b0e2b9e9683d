"""The everyday tools do the same in every kind of sandbox, with bash or without, with ripgrep or busybox."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.tools.everyday.boxes import Tools
from tests.tools.sandboxes.places import Place
from tools.everyday.task_sandbox import TaskSandbox


def in_place(place: Place, test: Callable[[Tools], Awaitable[None]]) -> None:
    async def main() -> None:
        tools = Tools(TaskSandbox(place.make))
        try:
            await test(tools)
        finally:
            await tools.sandbox.stop()

    asyncio.run(main())


def test_sbx_08_a_task_goes_the_same_way_everywhere(place: Place) -> None:
    async def test(tools: Tools) -> None:
        assert await tools.run("mkdir -p 'a b'; cd 'a b'; export A='x \"y\"'") == ""
        assert await tools.run('basename "$PWD"; echo "$A"; cd - >/dev/null; basename "$PWD"') != ""
        assert (await tools.call("terminal", command="cd 'a b'; exit 5"))["exit_code"] == 5
        assert await tools.run('basename "$PWD"; echo "$A"') == 'a b\nx "y"\n'
        assert await tools.run("printf 'a\\377b'; sleep 600 &") == "a\ufffdb"
        assert (await tools.call("terminal", command="if then"))["exit_code"] != 0
        late = await tools.call("terminal", command="echo begun; sleep 600", timeout=3)
        assert (late["timed_out"], late["stdout"]) == (True, "begun\n")
        long = "x" * 300_000
        assert (await tools.run(f"cat <<'END' | wc -c\n{long}\nEND")).strip() == "300001"
        await tools.call("write_file", path="d e/f.py", content="def alpha():\n    return 1\n")
        await tools.call("patch", path="d e/f.py", old_text="return 1", new_text="return 2")
        found = await tools.call("search_files", pattern=r"return\s\d", glob="*.py")
        assert found["matches"] == [{"path": "d e/f.py", "line": 2, "text": "    return 2"}]
        assert (await tools.call("search_files", glob="**/*.py"))["files"] == ["d e/f.py"]
        assert (await tools.call("read_file", path="d e/f.py"))["lines"] == 2
        assert (await tools.error("read_file", path="nothing"))[0] == "missing"
        assert (await tools.error("search_files", pattern="x", path="nothing"))[0] == "missing"
        started = await tools.call("process", action="start", command='basename "$PWD"; sleep 600')
        for _ in range(100):
            log = await tools.call("process", action="log", id=started["id"])
            if log["output"]:
                break
            await asyncio.sleep(0.1)
        assert (log["output"], log["running"]) == ("a b\n", True)
        await tools.call("process", action="kill", id=started["id"])

    in_place(place, test)


def test_a_sandbox_that_breaks_is_infrastructure(place: Place) -> None:
    async def test(tools: Tools) -> None:
        await tools.run("true")
        slow = asyncio.create_task(tools.error("terminal", command="sleep 600", timeout=600))
        await asyncio.sleep(1)
        place.break_off(await tools.sandbox.get())
        try:
            assert (await asyncio.wait_for(slow, 60))[0] == "sandbox"
            for name, arguments in (("terminal", {"command": "true"}), ("read_file", {"path": "x"})):
                assert (await asyncio.wait_for(tools.error(name, **arguments), 60))[0] == "sandbox"
        finally:
            place.mend()

    in_place(place, test)
