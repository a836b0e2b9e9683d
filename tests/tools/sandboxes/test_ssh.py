"""Tasks on another computer: here a real sshd on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.tools.sandboxes.engines import Sshd, wait_until
from tests.tools.sandboxes.leftovers import comes_to_run, rare_sleep, still_running
from tests.tools.sandboxes.places import DEADLINE, LATE, SshPlace, is_running
from tools.sandboxes.base import Sandbox, SandboxError, SandboxGone
from tools.sandboxes.ssh import Ssh


@pytest.fixture
def ssh(sshd: Sshd) -> SshPlace:
    return SshPlace(sshd)


def start(place: SshPlace, **settings: object) -> SandboxError:
    """What a sandbox that cannot start says."""

    async def main() -> None:
        made = place.make(**settings)
        try:
            await made.start()
        finally:
            await made.stop()

    with pytest.raises(SandboxError) as error:
        asyncio.run(main())
    return error.value


def test_it_says_plainly_that_it_does_not_isolate() -> None:
    assert Ssh.isolates is False
    assert "do not isolate" in sys.modules[Ssh.__module__].__doc__  # type: ignore[operator]


def test_each_task_has_a_folder_and_a_home_of_its_own(ssh: SshPlace) -> None:
    async def test(made: Sandbox) -> None:
        other = ssh.make()
        await other.start()
        try:
            await made.run("echo mine >f; echo mine >~/f; mktemp", DEADLINE)
            assert (await other.run("ls -A . ~ $TMPDIR", DEADLINE)).stdout.text.split("\n")[0] == ".:"
            assert "mine" not in (await other.run("cat f ~/f", DEADLINE)).stdout.text
            folders = os.listdir(ssh.server.far)
            assert len(folders) == 2
            assert all((ssh.server.far / name).stat().st_mode & 0o077 == 0 for name in folders)
        finally:
            await other.stop()

    ssh.check(test)


def test_secrets_of_this_side_are_not_on_the_other(ssh: SshPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    async def test(made: Sandbox) -> None:
        assert "sk-secret" not in (await made.run("env", DEADLINE)).stdout.text

    ssh.check(test)


def test_more_commands_than_sshd_takes_wait_for_their_turn(ssh: SshPlace) -> None:
    async def test(made: Sandbox) -> None:
        results = await asyncio.gather(*(made.run(f"sleep 0.2; echo {n}", 600) for n in range(24)))
        assert [result.stdout.text for result in results] == [f"{n}\n" for n in range(24)]

    ssh.check(test)


def test_what_runs_in_the_background_takes_no_turns(ssh: SshPlace) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        for _ in range(12):
            assert (await made.run(f"{sleep} & echo started", DEADLINE)).stdout.text == "started\n"

    ssh.check(test)
    assert still_running(sleep) == []


def test_what_is_wrong_with_a_connection_is_the_reason(ssh: SshPlace, tmp_path: Path) -> None:
    options = ssh.server.options
    (tmp_path / "empty").write_text("")
    assert "no host" in start(ssh, options={}).message
    assert "no option colour" in start(ssh, options={**options, "colour": "red"}).message
    assert "folder" in start(ssh, workdir=tmp_path).message
    refused = start(ssh, options={**options, "port": "1"})
    assert "Connection refused" in refused.message
    assert refused.hint
    unknown = start(ssh, options={**options, "known_hosts": str(tmp_path / "empty")})
    assert "verification failed" in unknown.message
    stranger = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    assert "Permission denied" in start(ssh, options={**options, "identity_file": str(stranger)}).message
    ssh.see_nothing_left()


def test_a_killed_process_leaves_nothing_on_the_other_side(ssh: SshPlace) -> None:
    sleep = rare_sleep()
    program = f"""
        import asyncio
        from tools.sandboxes.base import SandboxConfig
        from tools.sandboxes.ssh import Ssh

        async def main():
            made = Ssh(SandboxConfig("ssh", options={ssh.server.options!r}))
            await made.start()
            await made.run("setsid {sleep} & {sleep}", 600)

        asyncio.run(main())
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)])
    wait_until(lambda: is_running(sleep), "the command did not start")
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    ssh.see_nothing_left()
    assert still_running(sleep) == []


def test_a_command_that_removes_its_own_folders_only_fails_itself(ssh: SshPlace) -> None:
    async def test(made: Sandbox) -> None:
        await made.run('rm -rf "${TMPDIR%/*}"', DEADLINE)
        assert (await made.run("true", DEADLINE)).exit_code not in (0, None)
        assert (await made.run("echo hi", DEADLINE, cwd="/")).stdout.text == "hi\n"

    ssh.check(test)


def test_a_folder_that_is_made_again_while_the_task_is_ended_goes_too(ssh: SshPlace) -> None:
    async def test(made: Sandbox) -> None:
        await made.run('(while :; do mkdir -p "${TMPDIR%/*}/work"; done) & :', DEADLINE)

    ssh.check(test)


def test_a_start_that_is_cancelled_leaves_nothing_on_either_side(ssh: SshPlace) -> None:
    async def cancelled(seconds: float) -> None:
        made = ssh.make()
        starting = asyncio.create_task(made.start())
        await asyncio.sleep(seconds)
        starting.cancel()
        with suppress(asyncio.CancelledError):
            await starting
        await made.stop()

    async def test(made: Sandbox) -> None:
        for first in (0, 0.05, 0.1):
            await asyncio.gather(*(cancelled(first + number * 0.15) for number in range(4)))

    ssh.check(test)


def test_what_a_command_has_stopped_or_hidden_holds_up_no_end_and_outlives_none(ssh: SshPlace) -> None:
    sleep = rare_sleep()

    async def test(made: Sandbox) -> None:
        await made.run(f"(env -i PATH=$PATH setsid sh -c '{sleep}' &); (sleep 9; touch x) &", DEADLINE)
        stopped = asyncio.create_task(made.run(f"kill -STOP $PPID; {sleep}9", 600))
        await asyncio.to_thread(comes_to_run, f"{sleep}9")
        began = time.monotonic()
        await made.stop()
        assert time.monotonic() - began < LATE + 1
        with suppress(SandboxGone):
            await stopped

    ssh.check(test)
    assert still_running(sleep) == still_running(f"{sleep}9") == []
