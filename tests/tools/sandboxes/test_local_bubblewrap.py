"""Commands in local and bubblewrap: each way in which one can go wrong, and what is left of it."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.components import leave_out
from tests.tools.sandboxes.leftovers import comes_to_run, nothing_left, rare_sleep, still_running
from tests.tools.sandboxes.places import LocalPlace, agents
from tools.sandboxes.agent_sandbox import AgentSandbox
from tools.sandboxes.base import CommandResult, SandboxConfig, SandboxError, SandboxGone
from tools.sandboxes.kinds import make, usable

LATE = 2.0
"""Seconds after its deadline within which every command is back."""
DEADLINE = 20.0
"""Seconds for commands that end by themselves."""


@pytest.fixture(params=["local", "bubblewrap"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if why := usable(name):
        leave_out(f"{name} ({why})")
    return name


@asynccontextmanager
async def sandbox(kind: str, **settings: Any) -> AsyncIterator[AgentSandbox]:
    made = make(SandboxConfig(kind=kind, **settings))
    assert isinstance(made, AgentSandbox)
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


def check(kind: str, test: Callable[[AgentSandbox], Awaitable[None]], **settings: Any) -> None:
    """Runs a test in a sandbox, which must leave nothing behind."""

    async def main() -> None:
        async with sandbox(kind, **settings) as made:
            await test(made)

    LocalPlace(kind).warm_up()
    with nothing_left():
        asyncio.run(main())


async def timed(made: AgentSandbox, command: str, seconds: float = DEADLINE, **more: Any) -> CommandResult:
    """Runs a command, which must be back in time, and the sandbox must be well afterwards."""
    began = time.monotonic()
    result = await made.run(command, seconds, **more)
    assert time.monotonic() - began < seconds + LATE
    assert (await made.run("echo hi", DEADLINE)).stdout.text == "hi\n"
    return result


@pytest.mark.parametrize(
    ("command", "exit_code", "stdout"),
    [
        ("cat; read x; echo \"[$x]\"", 0, "[]\n"),
        ("printf '1\\n2\\n' >f; less f; $PAGER f", 0, "1\n2\n" * 2),
        ("read x </dev/tty; echo $?", 0, "2\n"),
        ("kill -9 $$", 137, ""),
        ("echo begun; kill -TERM $$", 143, "begun\n"),
        ("exit 3", 3, ""),
        ("nosuch", 127, ""),
        ("printf 'a\\377\\376b'", 0, "a\ufffd\ufffdb"),
        ("printf '\\346\\261'; sleep 0.2; printf '\\211'", 0, "\u6c49"),
        ("$EDITOR x || echo no editor", 0, "no editor\n"),
        ("ps >/dev/null 2>&1; tty", 1, "not a tty\n"),
    ],
)  # fmt: skip
def test_a_command_ends_by_itself(kind: str, command: str, exit_code: int, stdout: str) -> None:
    async def test(made: AgentSandbox) -> None:
        result = await timed(made, command)
        assert (result.exit_code, result.stdout.text, result.timed_out) == (exit_code, stdout, False)

    check(kind, test)


def test_sbx_01_a_pager_does_not_take_the_terminal(kind: str) -> None:
    if not shutil.which("git"):
        leave_out("git")

    async def test(made: AgentSandbox) -> None:
        identity = "-c user.name=a -c user.email=a@b"
        await made.run(
            f"git init -q r && cd r && git {identity} commit -q --allow-empty -m 'a commit'", DEADLINE
        )
        log = await timed(made, "git -C r log")
        assert (log.exit_code, "a commit" in log.stdout.text) == (0, True)

    check(kind, test)


@pytest.mark.parametrize(
    "command",
    [
        "vim x",
        "ssh -o ConnectTimeout=1 nosuch.invalid",
        "sudo -k true",
        "python3 -c 'import getpass; getpass.getpass()'",
    ],
)
def test_sbx_02_what_wants_a_person_ends_without_one(kind: str, command: str) -> None:
    if not shutil.which(command.split()[0]):
        leave_out(command.split()[0])

    async def test(made: AgentSandbox) -> None:
        result = await timed(made, command, 3)  # vim reads on from what it writes its errors to
        assert result.timed_out == command.startswith("vim")

    check(kind, test)


def test_what_a_child_in_the_background_writes_never_blocks_it(kind: str) -> None:
    async def test(made: AgentSandbox) -> None:
        result = await timed(
            made, "(sleep 0.2; head -c 30000000 /dev/zero; echo done >flag) & yes >&2 & echo ok"
        )
        assert result.stdout.text == "ok\n"
        assert (await made.run("until [ -e flag ]; do sleep 0.02; done", DEADLINE)).exit_code == 0

    check(kind, test)


@pytest.mark.parametrize(
    "command",
    [
        "{}",
        "trap '' TERM INT HUP; {}",
        "exec {}",
        "setsid {} & {}",
        "(setsid sh -c '{} & {} & exit' &); {}",
        "sh -c '{} & kill -STOP $$'",
        "env -i setsid {} & {}",
        "while :; do {} & sleep 0.005; done",
        "exec prlimit --rttime=100 {}",
        "(setsid prlimit --rttime=77:78 {} &); {}",
    ],
)
def test_at_the_deadline_the_whole_tree_is_ended_and_what_it_said_comes_back(kind: str, command: str) -> None:
    sleep = rare_sleep()

    async def test(made: AgentSandbox) -> None:
        result = await timed(made, f"echo begun; echo so far >&2; {command.format(*[sleep] * 3)}", 1)
        assert (result.exit_code, result.timed_out) == (None, True)
        assert (result.stdout.text, result.stderr.text) == ("begun\n", "so far\n")
        assert not still_running(sleep)

    check(kind, test)


def test_a_deadline_spares_what_earlier_commands_left_in_the_background(kind: str) -> None:
    sleep, below_another = rare_sleep(), rare_sleep()

    async def test(made: AgentSandbox) -> None:
        await made.run(
            f"setsid {sleep} & setsid sh -c 'prlimit --rttime=77 {below_another} & wait' &", DEADLINE
        )
        assert comes_to_run(below_another)
        await timed(made, "sleep 60", 0.3)
        assert comes_to_run(sleep)
        assert comes_to_run(below_another)

    check(kind, test)


def test_sbx_06_no_character_is_damaged_by_the_pieces_it_comes_in(kind: str) -> None:
    async def test(made: AgentSandbox) -> None:
        for before in (0, 1, 4094, 4095, 65534, 65535):
            text = "x" * before + "训练" * 60_000
            result = await made.run("cat", DEADLINE, stdin=text.encode(), output_limit=1_000_000)
            assert result.stdout.text == text

    check(kind, test)


def test_folder_and_variables_of_a_command(kind: str, tmp_path: Path) -> None:
    async def test(made: AgentSandbox) -> None:
        await made.run("mkdir -p 'a b'", DEADLINE)
        result = await timed(made, "pwd; echo $ONE $TWO", cwd="a b", env={"TWO": "2 €"})
        assert result.stdout.text == f"{made.workdir}/a b\n1 2 €\n"
        assert (await timed(made, "pwd", cwd="/")).stdout.text == "/\n"
        nowhere = await timed(made, "pwd", cwd="nosuch")
        assert (nowhere.exit_code, "can't cd to" in nowhere.stderr.text) == (2, True)

    check(kind, test, env={"ONE": "1"})


def test_a_folder_of_the_host_can_be_changed(kind: str, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("from the host")

    async def test(made: AgentSandbox) -> None:
        result = await timed(made, "pwd; cat given; echo made >made")
        assert result.stdout.text == f"{tmp_path}\nfrom the host"

    check(kind, test, workdir=tmp_path)
    assert (tmp_path / "made").read_text() == "made\n"


def test_secrets_of_the_host_are_not_in_the_environment(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "a-secret-of-the-host")

    async def test(made: AgentSandbox) -> None:
        result = await timed(made, "env; cat /proc/self/environ /proc/$PPID/environ; set")
        assert "secret" not in result.stdout.text

    check(kind, test)


def test_however_many_pipes_are_held_open_commands_run() -> None:
    async def test(made: AgentSandbox) -> None:
        for _ in range(90):
            assert (await timed(made, "sleep 600 &")).exit_code == 0
        await timed(made, "sleep 600", 0.1)

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (160, before[1]))
    try:
        check("local", test)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_what_the_kernel_does_not_take_fails_alone(kind: str) -> None:
    async def test(made: AgentSandbox) -> None:
        result = await timed(made, "echo", env={"A": "x" * 300_000})
        assert result.exit_code == 126
        assert result.stderr.text.startswith("sh: ")

    check(kind, test)


def test_signals_are_nothing_to_the_agent_and_all_there_for_commands(kind: str) -> None:
    async def test(made: AgentSandbox) -> None:
        every = "HUP INT QUIT ABRT USR1 USR2 PIPE ALRM TERM CHLD TSTP XCPU XFSZ IO RTMIN"
        result = await timed(
            made, f"for s in {every}; do kill -$s $PPID; done; sleep 0.1; kill -INT $$; echo"
        )
        assert result.exit_code == 130

    check(kind, test)


def test_what_reads_slowly_or_not_at_all_is_given_its_input(kind: str) -> None:
    async def test(made: AgentSandbox) -> None:
        data = os.urandom(5_000_000)
        result = await timed(made, "sleep 0.3; cat", stdin=data, output_limit=6_000_000)
        assert result.stdout.data == data
        assert (await timed(made, "echo unread", stdin=data)).stdout.text == "unread\n"
        assert (await timed(made, "head -c 3", stdin=data)).stdout.data == data[:3]

    check(kind, test)


def test_sixty_four_commands_at_once_do_not_mix(kind: str) -> None:
    async def test(made: AgentSandbox) -> None:
        commands = [f"sleep 0.0{n % 10}; echo {n}; echo e{n} >&2; exit {n}" for n in range(64)]
        results = await asyncio.gather(*(made.run(command, 60) for command in commands))
        said = [(r.exit_code, r.stdout.text, r.stderr.text) for r in results]
        assert said == [(n, f"{n}\n", f"e{n}\n") for n in range(64)]

    check(kind, test)


def test_the_agent_killed_is_said_once_and_later_calls_fail_at_once(kind: str) -> None:
    sleep = rare_sleep()

    async def test(made: AgentSandbox) -> None:
        running = asyncio.create_task(made.run(f"touch begun; setsid {sleep} & {sleep}", 600))
        await made.run("until [ -e begun ]; do sleep 0.01; done", DEADLINE)
        os.kill(agents(kind)[-1], signal.SIGKILL)
        with pytest.raises(SandboxGone, match=f"the {kind} sandbox is gone"):
            await asyncio.wait_for(running, 10)
        assert not await made.alive()
        for _ in range(2):
            with pytest.raises(SandboxGone, match=f"the {kind} sandbox is gone"):
                await asyncio.wait_for(made.run("echo hi", 600), 1)

    check(kind, test)
    assert not still_running(sleep)


def test_an_agent_that_is_held_up_does_not_hold_up_its_caller() -> None:
    async def test(made: AgentSandbox) -> None:
        result = await asyncio.wait_for(made.run("kill -STOP $PPID; sleep 60", 1), 1 + LATE)
        assert result.timed_out
        assert (await made.run("echo hi", 60)).stdout.text == "hi\n"

    check("local", test)


def test_stop_ends_a_running_command_and_may_be_called_twice(kind: str) -> None:
    sleep = rare_sleep()

    async def test(made: AgentSandbox) -> None:
        assert await made.alive()
        running = asyncio.create_task(made.run(sleep, 600))
        await asyncio.sleep(0.1)
        await asyncio.gather(made.stop(), made.stop())
        with pytest.raises(SandboxGone, match="was stopped"):
            await running
        assert not await made.alive()
        assert not still_running(sleep)

    check(kind, test)


def test_nothing_runs_before_the_start(kind: str) -> None:
    async def main() -> None:
        made = make(SandboxConfig(kind=kind))
        with pytest.raises(SandboxGone, match="has not been started"):
            await made.run("echo hi", 5)
        await made.stop()

    with nothing_left():
        asyncio.run(main())


def test_a_working_folder_that_is_not_there_is_named_at_the_start(kind: str, tmp_path: Path) -> None:
    async def main() -> None:
        made = make(SandboxConfig(kind=kind, workdir=tmp_path / "nosuch"))
        with pytest.raises(SandboxError, match="nosuch"):
            await made.start()
        assert not await made.alive()
        await made.stop()

    asyncio.run(main())


def test_a_kind_that_is_not_there_is_named() -> None:
    with pytest.raises(SandboxError, match="there is no kind of sandbox 'bublewrap'") as caught:
        make(SandboxConfig(kind="bublewrap"))
    assert "bubblewrap" in str(caught.value.hint)


def test_bubblewrap_that_is_not_installed_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tools.sandboxes import bubblewrap

    monkeypatch.setenv("PATH", str(tmp_path))
    assert "not installed" in str(bubblewrap._why_not.__wrapped__())


def test_ctrl_c_at_the_terminal_is_not_for_the_sandbox(kind: str) -> None:
    program = f"""
import asyncio, os, signal
from tools.sandboxes.base import SandboxConfig
from tools.sandboxes.kinds import make
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: None)
    sandbox = make(SandboxConfig(kind="{kind}"))
    await sandbox.start()
    running = asyncio.create_task(sandbox.run("sleep 1; echo over", 60))
    await asyncio.sleep(0.3)
    os.killpg(0, signal.SIGINT)
    print((await running).stdout.text, (await sandbox.run("echo hi", 60)).stdout.text)
    await sandbox.stop()
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        start_new_session=True,
        timeout=60,
    )
    assert done.stdout.split() == ["over", "hi"], done.stderr
