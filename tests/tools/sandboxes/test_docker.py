"""Containers of a real engine: images, limits, network, what is left by a process that was killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.components import leave_out
from tests.tools.sandboxes.engines import IMAGE, KEEPER, Podman, wait_until
from tests.tools.sandboxes.places import DEADLINE, LATE, DockerPlace
from tools.sandboxes.base import Resources, Sandbox, SandboxError, SandboxGone


@pytest.fixture
def docker(podman: Podman, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerPlace]:
    for name, value in podman.env.items():
        monkeypatch.setenv(name, value)
    yield DockerPlace(podman)
    if shutil.which("docker") and podman.service is None:
        podman.serve()


def start(place: DockerPlace, **settings: object) -> SandboxError:
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


@pytest.mark.parametrize("command", ["docker", "podman"])
def test_any_command_that_is_like_docker_will_do(docker: DockerPlace, command: str) -> None:
    if not shutil.which(command):
        leave_out(command)

    async def test(made: Sandbox) -> None:
        assert (await made.run("echo hi; hostname >&2", DEADLINE)).stdout.text == "hi\n"
        await made.write_bytes("f", b"\0\xff")
        assert await made.read_bytes("f") == b"\0\xff"

    docker.check(test, options={"command": command})


def test_a_missing_command_image_or_engine_is_the_reason(
    docker: DockerPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no nosuchcommand" in start(docker, options={"command": "nosuchcommand"}).message
    assert "no image is named" in start(docker, image=None).message
    missing = start(docker, image="localhost/nosuch:latest")
    assert "has no image localhost/nosuch:latest: " in missing.message
    assert missing.hint
    if shutil.which("docker"):
        monkeypatch.setenv("DOCKER_HOST", "unix:///nosuch/socket")
        assert "does not answer" in start(docker).message
    assert docker.engine.containers() == []


def test_where_docker_has_no_engine_podman_is_asked_and_named(
    docker: DockerPlace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alone = tmp_path / "docker"
    alone.write_text("#!/bin/sh\necho Cannot connect >&2; exit 1\n")
    alone.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "the engine of docker does not answer: Cannot connect" in start(docker).message
    monkeypatch.delenv("DOCKER_HOST")
    assert "the engine of podman has no image" in start(docker, image="localhost/nosuch:latest").message

    async def test(made: Sandbox) -> None:
        assert (await made.run("echo hi", DEADLINE)).stdout.text == "hi\n"

    docker.check(test)


def test_an_image_is_looked_for_once_for_all_tasks(docker: DockerPlace, tmp_path: Path) -> None:
    real = shutil.which("podman")
    counting = tmp_path / "counting"
    counting.write_text(f'#!/bin/sh\necho "$1 $2" >>{tmp_path}/calls\nexec {real} "$@"\n')
    counting.chmod(0o755)

    async def main(image: str) -> list[BaseException | None]:
        made = [docker.make(image=image, options={"command": str(counting)}) for _ in range(5)]
        answers = await asyncio.gather(*(one.start() for one in made), return_exceptions=True)
        await asyncio.gather(*(one.stop() for one in made))
        return answers

    assert asyncio.run(main(IMAGE)) == [None] * 5
    failed = asyncio.run(main("localhost/nosuch:latest"))
    assert len({str(error) for error in failed}) == 1
    assert isinstance(failed[0], SandboxError)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert (calls.count("image inspect"), calls.count("pull --quiet")) == (2, 1)
    assert docker.engine.containers() == []


def test_memory_and_processes_are_bounded_and_what_is_not_is_told(docker: DockerPlace) -> None:
    async def test(made: Sandbox) -> None:
        flood = await made.run("for i in $(seq 200); do sleep 3 & done; echo all", DEADLINE)
        assert flood.stdout.text != "all\n" or "fork" in flood.stderr.text
        for _ in range(60):  # until there is room for it
            if (await made.run("echo well", DEADLINE)).stdout.text == "well\n":
                break
            await asyncio.sleep(0.5)
        assert (await made.run("echo well", DEADLINE)).stdout.text == "well\n"

    docker.check(test, resources=Resources(processes=60))

    async def hungry(made: Sandbox) -> None:
        result = await made.run("head -c 300000000 /dev/zero | tail -c 200000000 | wc -c", DEADLINE)
        assert result.stdout.text.strip() != "200000000"
        assert (await made.run("echo well", DEADLINE)).stdout.text == "well\n"
        assert getattr(made, "unbounded") in ((), ("disk_mib",))  # noqa: B009

    docker.check(hungry, resources=Resources(memory_mib=64))


@pytest.mark.parametrize(
    "attack",
    [
        "for i in $(seq 100); do sleep 100 & done 2>/dev/null",
        pytest.param(
            "i=0; while [ $i -lt 100 ]; do i=$((i + 1)); (setsid env -i /bin/sleep 100 &); done",
            marks=pytest.mark.soak,
        ),
        "for s in TERM INT HUP USR1 KILL; do kill -$s 1; done; kill -KILL -1",
        pytest.param("f() { f | f & }; f", marks=pytest.mark.soak),
        "kill -KILL $(pidof sleep); for i in $(seq 100); do sleep 100 & done",
    ],
)
def test_whatever_a_command_does_to_the_first_process_or_the_limit_others_go_on(
    docker: DockerPlace, attack: str
) -> None:
    async def test(made: Sandbox) -> None:
        await made.run(attack, 5)
        first = await made.run("echo hi", DEADLINE)  # there may be no room for it
        assert (first.exit_code, first.stdout.text) in ((0, "hi\n"), (137, ""))
        for _ in range(3):
            assert (await made.run("echo well", DEADLINE)).stdout.text == "well\n"

    docker.check(test, resources=Resources(processes=40))


def test_a_start_that_is_cancelled_leaves_no_container(docker: DockerPlace) -> None:
    async def cancelled(seconds: float) -> None:
        made = docker.make()
        starting = asyncio.create_task(made.start())
        await asyncio.sleep(seconds)
        starting.cancel()
        with suppress(asyncio.CancelledError):  # it may be over by then
            await starting
        await made.stop()

    async def main() -> None:
        made = docker.make()
        await made.start()
        await made.stop()
        for tenths in range(6):
            await cancelled(tenths / 20)

    asyncio.run(main())
    assert docker.engine.containers() == []


def test_there_is_no_network_unless_it_is_allowed(docker: DockerPlace) -> None:
    async def test(made: Sandbox) -> None:
        assert (await made.run("ls /sys/class/net", DEADLINE)).stdout.text.split() == ["lo"]

    docker.check(test)


def test_a_folder_of_the_host_can_be_worked_in(docker: DockerPlace, tmp_path: Path) -> None:
    (tmp_path / "it is").mkdir()
    (tmp_path / "it is" / "here").write_text("x")

    async def test(made: Sandbox) -> None:
        assert (await made.run("ls; echo y >there", DEADLINE)).stdout.text == "here\n"

    docker.check(test, workdir=tmp_path / "it is")
    assert (tmp_path / "it is" / "there").read_text() == "y\n"


def test_an_engine_that_goes_away_in_the_middle_is_an_error_and_its_container_is_removed_later(
    docker: DockerPlace,
) -> None:
    if not shutil.which("docker"):
        leave_out("docker (the command)")

    async def main() -> None:
        made = docker.make()
        await made.start()
        running = asyncio.create_task(made.run("echo begin; sleep 600", 600))
        await asyncio.sleep(1)
        docker.engine.end_service()
        with pytest.raises(SandboxGone, match="gone"):
            await asyncio.wait_for(running, DEADLINE)
        began = time.monotonic()
        with pytest.raises(SandboxGone):
            await made.run("true", 600)
        assert time.monotonic() - began < LATE
        await made.stop()
        assert len(docker.engine.containers()) == 1
        docker.engine.serve()
        other = docker.make()
        await other.start()
        await other.stop()
        assert docker.engine.containers() == []

    asyncio.run(main())


@pytest.mark.parametrize("command", ["docker", "podman"])
def test_what_a_killed_process_left_is_removed_at_the_next_start(docker: DockerPlace, command: str) -> None:
    if not shutil.which(command):
        leave_out(command)
    options = {"command": command}
    program = f"""
        import asyncio
        from tools.sandboxes.base import SandboxConfig
        from tools.sandboxes.docker import Docker

        async def main():
            made = Docker(SandboxConfig("docker", image="{IMAGE}", options={options}))
            await made.start()
            print("started", flush=True)
            await made.run("sleep 600", 600)

        asyncio.run(main())
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE)
    assert child.stdout
    assert child.stdout.readline() == b"started\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert len(docker.engine.containers()) == 1

    async def test(made: Sandbox) -> None:
        assert len(docker.engine.containers()) == 1

    docker.check(test, options=options)
    assert docker.engine.containers() == []
    assert KEEPER in docker.engine.podman("ps", "--format", "{{.Names}}")


def test_an_engine_that_hangs_does_not_hold_a_command_beyond_its_deadline(docker: DockerPlace) -> None:
    if not shutil.which("docker"):
        leave_out("docker (the command)")

    async def main() -> None:
        made = docker.make()
        await made.start()
        service = docker.engine.service
        assert service
        running = asyncio.create_task(made.run("echo begin; sleep 600", 3))
        await asyncio.sleep(1)
        family = [psutil.Process(service.pid), *psutil.Process(service.pid).children(recursive=True)]
        for process in family:
            process.suspend()
        try:
            result = await asyncio.wait_for(running, 3 + LATE)
            assert result.timed_out
        finally:
            for process in family:
                process.resume()
        await made.stop()

    asyncio.run(main())
    wait_until(lambda: docker.engine.containers() == [], "a container is left")
