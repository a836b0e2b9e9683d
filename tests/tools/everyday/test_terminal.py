"""Commands of one task are one session: they find what earlier ones left, and nobody waits for input."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.tools.everyday.boxes import every_kind, tools_in


@every_kind
def test_the_working_folder_and_exported_variables_persist(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            first = await tools.call("terminal", command="mkdir 'a b'; cd 'a b'; export A=$'x\\n\"y'; exit 3")
            assert (first["exit_code"], first["truncated"]) == (3, False)
            told = (
                await tools.run('basename "$PWD"; echo "$A"; cd - >/dev/null; echo $#; umask')
            ).splitlines()
            assert told[:4] == ["a b", "x", '"y', "0"]
            assert (await tools.run("ls")).split("\n")[0] == "a b"
            assert "line 2" in (await tools.call("terminal", command="true\nif then"))["stderr"]
            assert await tools.run("echo after") == "after\n"
            gone = await tools.call("terminal", command="cd 'a b'; rmdir ../'a b'")
            assert gone["exit_code"] == 0
            back = await tools.call("terminal", command="pwd; ls")
            assert back["exit_code"] == 0
            assert "is gone" in back["stderr"]

    asyncio.run(main())


@every_kind
def test_a_command_of_any_length_is_run(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            for size in (99_000, 400_000):
                text = "q'\"$ \\" * (size // 6)
                counted = await tools.run(f"cd /tmp; wc -c <<'END'\n{text}\nEND\nexport SIZE={size}")
                assert int(counted) == len(text) + 1
            assert await tools.run("pwd; echo $SIZE") == "/tmp\n400000\n"

    asyncio.run(main())


@every_kind
def test_policy_and_verifier_have_sessions_of_their_own(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run("echo made >made; cd /tmp; export PATH=/nowhere:$PATH TRAP=1")
            tools.context.caller = "reward"
            assert await tools.run(
                "cat made; echo ${TRAP-none}; case $PATH in /nowhere*) echo trapped;; esac"
            ) == ("made\nnone\n")

    asyncio.run(main())


@every_kind
def test_sbx_01_no_pager_takes_what_comes_after(kind: str) -> None:
    commits = 60

    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run(
                "git init -q repo && cd repo && git config user.email a@b && git config user.name n && "
                f"for i in $(seq {commits}); do git commit -q --allow-empty -m commit-$i; done; cd .."
            )
            log = await tools.run("git -C repo log")
            assert log.count("commit-") == commits
            assert await tools.run("echo hi") == "hi\n"

    asyncio.run(main())


@every_kind
@pytest.mark.parametrize(
    "command", ["vim x", "sudo -k true", "ssh -o BatchMode=no nosuch.invalid", "read -p x", "python3"]
)
def test_sbx_02_what_wants_a_terminal_ends(kind: str, command: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run("true")
            started = time.monotonic()
            result = await tools.call("terminal", command=command, timeout=4)
            assert time.monotonic() - started <= 4 + 5
            assert result["ok"]
            if result["exit_code"] is None:
                assert "hint" in result
            assert (
                "vim" not in await tools.run("ps -eo comm 2>/dev/null || cat /proc/[0-9]*/comm")
                or kind == "local"
            )
            assert await tools.run("echo next") == "next\n"

    asyncio.run(main())


@every_kind
def test_a_command_that_wanted_input_is_told_so(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            result = await tools.call("terminal", command="python3 -c 'input()'")
            assert result["exit_code"] == 1
            assert "pipe the input in" in result["hint"]
            slow = await tools.call("terminal", command="echo begun; sleep 60", timeout=2)
            assert (slow["exit_code"], slow["timed_out"], slow["stdout"]) == (None, True, "begun\n")
            assert "process" in slow["hint"]

    asyncio.run(main())


@every_kind
@pytest.mark.parametrize(
    "command",
    [
        "sleep 600 & echo started",
        "nohup python3 -m http.server 0 >/dev/null 2>&1 & echo started",
        "(sleep 600 &) ; echo started",
        "setsid sleep 600 & echo started",
    ],
)
def test_sbx_03_a_background_child_holds_up_nothing(kind: str, command: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            await tools.run("true")
            assert await tools.run(command, timeout=60) == "started\n"

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 60


@every_kind
def test_sbx_05_binary_bytes_break_nothing_later(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            home = await tools.run("pwd")
            for _ in range(30):
                await tools.run("head -c 100 /dev/urandom")
                assert await tools.run("pwd") == home

    asyncio.run(main())


@every_kind
def test_long_output_keeps_its_ends(kind: str) -> None:
    async def main() -> None:
        async with tools_in(kind) as tools:
            result = await tools.call("terminal", command="seq 100000")
            assert result["truncated"]
            assert result["stdout"].startswith("1\n2\n")
            assert result["stdout"].endswith("\n100000\n")
            assert "bytes left out" in result["stdout"]

    asyncio.run(main())


def test_a_time_out_must_make_sense() -> None:
    async def main() -> None:
        async with tools_in("local") as tools:
            assert (await tools.error("terminal", command="true", timeout=0))[0] == "invalid_arguments"
            assert (await tools.error("terminal", command="true", timeout=10**9))[0] == "invalid_arguments"

    asyncio.run(main())
