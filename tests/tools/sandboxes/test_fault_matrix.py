"""What can go wrong with a command, in each kind of sandbox: it is back in time, and nothing is left."""

from __future__ import annotations

import asyncio
import hashlib
import random
import secrets
import time

import psutil
import pytest

from tests.tools.sandboxes.engines import wait_until
from tests.tools.sandboxes.leftovers import rare_sleep, still_running
from tests.tools.sandboxes.places import DEADLINE, LATE, Place, is_running, timed
from tools.sandboxes.base import MIB, FileProblem, Sandbox, SandboxGone


@pytest.mark.parametrize(
    ("command", "exit_code", "stdout"),
    [
        ('cat; read x; echo "[$x]"', 0, "[]\n"),
        ("printf '1\\n2\\n' >f; less f || cat f", 0, "1\n2\n"),
        ("printf '1\\n2\\n' | ${PAGER:-less}", 0, "1\n2\n"),
        ("(read x </dev/tty) 2>/dev/null || echo none", 0, "none\n"),
        ("printf 'Password: '; (stty -echo; read x) 2>/dev/null; echo $?", 0, "Password: 1\n"),
        ("printf 'a\\377b'", 0, "a\ufffdb"),
        ("kill -9 $$", 137, ""),
        ("kill -TERM $$", 143, ""),
        ("echo out; exit 77", 77, "out\n"),
        ("nosuchcommand", 127, ""),
        ("echo a; (sleep 0.5; echo late) & echo b", 0, "a\nb\n"),
    ],
)
def test_commands_that_want_somebody_or_break_are_over_at_once(
    place: Place, command: str, exit_code: int, stdout: str
) -> None:
    async def test(made: Sandbox) -> None:
        result = await timed(made, command)
        assert (result.exit_code, result.stdout.text, result.timed_out) == (exit_code, stdout, False)

    place.check(test)


@pytest.mark.parametrize(
    "program", ["vi", "vim", "less -f /dev/zero", "passwd", "sudo -k", "su -c true nobody"]
)
def test_programs_for_a_terminal_end_at_their_deadline_at_the_latest(place: Place, program: str) -> None:
    async def test(made: Sandbox) -> None:
        command = f"{program} {secrets.token_hex(8)}"
        await timed(made, command, 2)
        assert still_running(command) == []

    place.check(test)


@pytest.mark.parametrize(
    "command",
    [
        "(env -i PATH=$PATH setsid sh -c '{sleep}' &) ; echo started",
        "{sleep} & echo started",
        "({sleep} &) ; echo started",
        "setsid {sleep} & echo started",
        "$(command -v nohup) {sleep} >/dev/null 2>&1 & echo started",
        "(trap '' HUP TERM; setsid setsid {sleep}) & echo started",
    ],
)
def test_what_runs_on_in_the_background_holds_nothing_up_and_ends_with_the_sandbox(
    place: Place, command: str
) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        result = await timed(made, command.format(sleep=sleep))
        assert result.stdout.text == "started\n"
        assert result.seconds < DEADLINE / 2
        await asyncio.to_thread(wait_until, lambda: is_running(sleep), "it did not start", DEADLINE)

    place.check(test)
    assert still_running(sleep) == []


def test_what_runs_on_in_the_background_does_not_die_of_its_next_line(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        await timed(
            made, "(for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; echo $i; echo $i >&2; done; echo >end) & :"
        )
        result = await timed(made, "until [ -e end ]; do sleep 0.1; done")
        assert result.exit_code == 0

    place.check(test)


@pytest.mark.parametrize(
    "command",
    [
        "echo before; (env -i PATH=$PATH setsid sh -c '{sleep}' &) ; {sleep}",
        "echo before; {sleep}",
        "echo before; {sleep} & {sleep}",
        "echo before; setsid {sleep} & wait",
        "echo before; (setsid sh -c 'trap \"\" TERM; {sleep}; :' &) ; {sleep}",
        "echo before; env -i PATH=$PATH {sleep}",
        "echo before; {sleep} | cat",
        "echo before; kill -STOP $PPID; {sleep}",
    ],
)
def test_at_its_deadline_a_command_and_all_it_started_are_ended(place: Place, command: str) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        result = await timed(made, command.format(sleep=sleep), 2)
        assert (result.exit_code, result.timed_out, result.stdout.text) == (None, True, "before\n")
        assert still_running(sleep) == []

    place.check(test)


def test_a_command_that_nobody_waits_for_any_more_is_ended(place: Place) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await made.run(f"setsid {sleep} & {sleep}", 600)
        await asyncio.to_thread(lambda: still_running(sleep))
        assert still_running(sleep) == []

    place.check(test)


@pytest.mark.parametrize("size", [100 * MIB, pytest.param(1024 * MIB, marks=pytest.mark.soak)])
def test_endless_output_is_counted_and_its_ends_are_kept(place: Place, size: int) -> None:
    command = f"echo first; head -c {size} /dev/zero | tr '\\0' x; echo; echo last; echo done >&2"

    async def test(made: Sandbox) -> None:
        used = psutil.Process().memory_info().rss
        result = await timed(made, command, 600, output_limit=1000)
        assert psutil.Process().memory_info().rss - used < 20 * MIB
        assert result.exit_code == 0
        assert (result.stdout.size, result.stdout.truncated) == (size + len("first\n\nlast\n"), True)
        assert result.stdout.text.startswith("first\nxxx")
        assert result.stdout.text.endswith("xxx\nlast\n")
        assert result.stderr.text == "done\n"

    place.check(test)


def test_output_that_never_ends_is_ended_at_the_deadline(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        result = await timed(made, "yes", 2)
        assert result.timed_out
        assert result.stdout.text.startswith("y\ny\n")
        assert result.stdout.size > MIB

    place.check(test)


def test_what_the_sandbox_depends_on_goes_away_in_the_middle(place: Place) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        running = asyncio.create_task(made.run(f"echo started; {sleep}", 60))
        await asyncio.to_thread(wait_until, lambda: is_running(sleep), "it did not start", DEADLINE)
        await asyncio.to_thread(place.break_off, made)
        with pytest.raises(SandboxGone) as first:
            await asyncio.wait_for(running, DEADLINE)
        began = time.monotonic()
        for call in (made.run("true", 60), made.read_bytes("x"), made.start_process("true")):
            with pytest.raises(SandboxGone) as again:
                await call
            assert str(again.value) == str(first.value)
        assert time.monotonic() - began < LATE
        assert not await made.alive()

    place.check(test)
    assert still_running(sleep) == []


IMPOSSIBLE: list[tuple[dict[str, object], str]] = [
    ({"command": "echo a\0b"}, "NUL character"),
    ({"cwd": "\0"}, "NUL character"),
    ({"env": {"A": "\0"}}, "NUL character"),
    ({"command": "echo \ud800"}, "half a character"),
    ({"cwd": "\ud800"}, "half a character"),
    ({"env": {"A": "\ud800"}}, "half a character"),
    ({"env": {"A B": "x"}}, "'A B' is no name of a variable"),
    ({"env": {"A=B": ""}}, "'A=B' is no name of a variable"),
    ({"env": {"": ""}}, "no name of a variable"),
]


def test_what_no_command_can_be_is_one_error_of_its_call(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        for bad, why in IMPOSSIBLE:
            with pytest.raises(ValueError, match=why):
                await made.run(**{"command": "true", "seconds": DEADLINE, **bad})  # type: ignore[arg-type]
            with pytest.raises(ValueError, match=why):
                await made.start_process(**{"command": "true", **bad})  # type: ignore[arg-type]
        with pytest.raises(FileProblem, match="is no path"):
            await made.read_bytes("a\ud800")
        assert (await made.run("echo \udcff | od -An -tx1", DEADLINE)).stdout.text.split() == ["ff", "0a"]

    place.check(test)


# Field reports


def test_sbx_01_a_pager_takes_nothing_from_the_next_command(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        await timed(made, "seq 5000 | ${PAGER:-less}; seq 5000 | more")
        assert (await made.run("echo hi", DEADLINE)).stdout.text == "hi\n"

    place.check(test)


@pytest.mark.parametrize("command", ["vi x", "sudo -k true", "ssh nosuch", "read -p x y", "python3"])
def test_sbx_02_nothing_gets_hold_of_a_terminal(place: Place, command: str) -> None:
    async def test(made: Sandbox) -> None:
        await timed(made, command, 3)
        result = await made.run("tty; stty -a", DEADLINE)
        assert result.stdout.text == "not a tty\n"

    place.check(test)


def test_sbx_03_servers_in_the_background_do_not_hold_the_call(place: Place) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        for command in (
            f"{sleep} & echo started",
            f"({sleep} &); echo started",
            f"setsid {sleep} & echo started",
        ):
            assert (await timed(made, command)).stdout.text == "started\n"

    place.check(test)
    assert still_running(sleep) == []


def test_sbx_05_random_bytes_break_no_later_command(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        for _ in range(10):
            assert (await made.run("head -c 100 /dev/urandom", DEADLINE)).stdout.size == 100
            assert (await made.run("pwd", DEADLINE)).stdout.text == f"{made.workdir}\n"

    place.check(test)


@pytest.mark.parametrize("border", [65_536, 4096])
def test_sbx_06_a_character_between_two_reads_stays_whole(place: Place, border: int) -> None:
    async def test(made: Sandbox) -> None:
        for size in range(border - 2, border + 3):
            text = ("x" * (size % 3) + "训练" * (size // 3))[:size]
            await made.write_bytes("text", text.encode())
            result = await made.run("cat text; sleep 0; cat text", DEADLINE, output_limit=10 * MIB)
            assert hashlib.sha256(result.stdout.data).digest() == hashlib.sha256(2 * text.encode()).digest()
            assert "\ufffd" not in result.stdout.text

    place.check(test)


CONFORMANCE = [
    ("echo out; echo err >&2; exit 3", 3, "out\n", "err\n"),
    ("printf '\\377\\376ok'", 0, "\ufffd\ufffdok", ""),
    ("printf 'no newline'", 0, "no newline", ""),
    ("echo \"$GREETING\"; pwd | sed 's|.*/||'", 0, 'it\'s "so"\n$HOME\nsub dir\n', ""),
    ("cat", 0, "line\n\x00\ufffd", ""),
    ("false", 1, "", ""),
    ("exit 255", 255, "", ""),
    ("printf %s 'quote \"'\"'\"' end'", 0, "quote \"' end", ""),
]


def test_sbx_08_a_command_means_the_same_in_every_kind(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        await made.run("mkdir 'sub dir'", DEADLINE)
        for command, code, out, err in CONFORMANCE:
            result = await made.run(
                command,
                DEADLINE,
                cwd="sub dir",
                env={"GREETING": 'it\'s "so"\n$HOME'},
                stdin=b"line\n\0\xff" if command == "cat" else None,
            )
            assert (command, result.exit_code, result.stdout.text, result.stderr.text) == (
                command,
                code,
                out,
                err,
            )

    place.check(test)


def test_sbx_09_the_limit_counts_bytes_and_cuts_no_character(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        await made.write_bytes("text", ("训" * 1_000_000).encode())
        result = await made.run("cat text", DEADLINE, output_limit=MIB)
        assert result.stdout.size == 3_000_000
        assert len(result.stdout.data) <= MIB + len("\n[3000000 bytes left out]\n")
        result.stdout.data.decode("utf-8")

    place.check(test)


def test_a_command_may_have_any_length(place: Place) -> None:
    async def test(made: Sandbox) -> None:
        text = "".join(random.Random(5).choices("abc '\"$`\\\n", k=120_000))
        quoted = text.replace("'", "'\"'\"'")
        result = await timed(made, f"printf %s '{quoted}'", output_limit=MIB)
        assert result.stdout.data == text.encode()

    place.check(test)


@pytest.mark.parametrize("count", [1, pytest.param(25, marks=pytest.mark.soak)])
def test_tasks_that_come_and_go_leave_nothing(place: Place, count: int) -> None:
    async def test(made: Sandbox) -> None:
        async def one() -> None:
            other = place.make()
            await other.start()
            await other.run(f"{rare_sleep()} & echo hi", DEADLINE)
            await other.stop()

        for _ in range(count):
            await one()
        await asyncio.gather(*(one() for _ in range(2)))

    place.check(test)
