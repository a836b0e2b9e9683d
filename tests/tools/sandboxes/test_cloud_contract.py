"""apptainer, modal and daytona against stand-ins for their programs and SDKs: not against the real ones.

What is shown: the same promises hold over whatever carries the streams, and each is asked for what it has.
A stand-in runs commands in a bubblewrap of the test's own; Daytona's ssh access leads to a real sshd.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from rl_cli.core.extras import EXTRAS
from tests.components import leave_out
from tests.tools.sandboxes.engines import Sshd
from tests.tools.sandboxes.places import DEADLINE, SshPlace
from tools.sandboxes import kinds
from tools.sandboxes.base import Resources, Sandbox, SandboxConfig, SandboxError, SandboxGone


@pytest.fixture
def jail(tmp_path: Path) -> Iterator[list[str]]:
    """A command line in front of another: it sees this machine's programs, and two folders of the test."""
    if kinds.usable("bubblewrap"):
        leave_out("bubblewrap")
    words = ["bwrap", "--tmpfs", "/", "--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for name in ("bin", "lib", "lib64", "sbin"):
        if Path(f"/{name}").is_symlink():
            words += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
        elif Path(f"/{name}").is_dir():
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    for name in ("workspace", "tmp"):
        (tmp_path / "jail" / name).mkdir(parents=True)
        words += ["--bind", str(tmp_path / "jail" / name), f"/{name}"]
    # Its processes see those of earlier commands, as in a container; /proc is this machine's.
    words[words.index("--proc") : words.index("--proc") + 2] = ["--ro-bind", "/proc", "/proc"]
    yield [*words, "--setenv", "RL_CLI_JAIL", str(tmp_path), "--chdir", "/"]
    end_all(tmp_path)


def end_all(tmp_path: Path) -> None:
    """Ends what runs in a test's jail."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("RL_CLI_JAIL") == str(tmp_path):
                process.kill()


async def keeps_the_promises(made: Sandbox, files: Path) -> None:
    result = await made.run(
        'echo "$WORD"; cat; echo err >&2; exit 3', DEADLINE, env={"WORD": "w"}, stdin=b"\xff\n"
    )
    assert (result.exit_code, result.stdout.data, result.stderr.text) == (3, b"w\n\xff\n", "err\n")
    assert (await made.run("cat; sleep 600 & echo now", DEADLINE)).stdout.text == "now\n"
    late = await made.run("echo begin; sleep 600", 2)
    assert (late.timed_out, late.stdout.text) == (True, "begin\n")
    await made.write_bytes("a/b c", b"\0" * 300_000)
    (files / "tree").mkdir()
    (files / "tree" / "f").write_bytes(b"\xfe")
    await made.upload(files / "tree", "tree")
    await made.download("tree", files / "back")
    assert (files / "back" / "f").read_bytes() == b"\xfe"
    assert len(await made.read_bytes("a/b c")) == 300_000
    id = await made.start_process("echo out; sleep 600")
    await made.run("sleep 0.5", DEADLINE)
    assert await made.read_process(id) == b"out\n"
    await made.kill_process(id)
    assert [status.running for status in await made.processes()] == [False]


def run(config: SandboxConfig, test: Callable[[Sandbox], Any]) -> None:
    kinds.usable.cache_clear()

    async def main() -> None:
        made = kinds.make(config)
        try:
            await made.start()
            await test(made)
        finally:
            await made.stop()
        assert not await made.alive()
        with pytest.raises(SandboxGone):
            await made.run("true", DEADLINE)

    try:
        asyncio.run(main())
    finally:
        kinds.usable.cache_clear()


# Apptainer: a program

APPTAINER = """\
#!/bin/sh
echo "$@" >>{log}
case "$1 $2" in
"instance start")
  case "$*" in *--memory*) echo "FATAL: cannot use cgroups" >&2; exit 255;; esac
  case "$*" in *nosuch.sif*) echo "FATAL: no such file" >&2; exit 255;; esac;;
"instance stop") ;;
*) shift 4; exec {jail} "$@";;
esac
"""


@pytest.fixture
def apptainer(tmp_path: Path, jail: list[str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The log of its calls."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "apptainer"
    program.write_text(APPTAINER.format(log=tmp_path / "log", jail=" ".join(jail)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path / "log"


def test_apptainer_keeps_the_promises(apptainer: Path, files: Path) -> None:
    run(SandboxConfig("apptainer", image="some.sif"), lambda made: keeps_the_promises(made, files))
    first, second, *_, last = apptainer.read_text().splitlines()
    assert first.startswith("instance start --cpus" if "--cpus" in first else "instance start --memory 2048M")
    assert second.startswith(
        "instance start --containall --no-home --writable-tmpfs --net --network none some.sif"
    )
    assert last.startswith("instance stop --force rl-cli-")


def test_apptainer_tells_what_it_does_not_bound_and_why_it_does_not_start(apptainer: Path) -> None:
    async def test(made: Any) -> None:
        assert made.unbounded == ("memory_mib", "processes")

    run(SandboxConfig("apptainer", image="some.sif", resources=Resources(disk_mib=None)), test)
    with pytest.raises(SandboxError, match="no option command"):
        run(SandboxConfig("apptainer", image="some.sif", options={"command": "x"}), test)
    with pytest.raises(SandboxError, match="no such file"):
        run(SandboxConfig("apptainer", image="nosuch.sif"), test)


# Modal: an SDK


class ModalError(Exception):
    """What the SDK's errors descend from."""


class Aio:
    """A function as the SDK has it: to be awaited as `.aio`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.aio = function


class ModalStdin:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer, self._buffer, self._eof = writer, bytearray(), False
        self.drain = Aio(self._drain)

    def write(self, data: bytes) -> None:
        if len(self._buffer) + len(data) > 2 * 1024 * 1024:
            raise BufferError("Buffer size exceed limit. Call drain to flush the buffer.")
        self._buffer += data

    def write_eof(self) -> None:
        self._eof = True

    async def _drain(self) -> None:
        try:
            self._writer.write(bytes(self._buffer))
            self._buffer.clear()
            await self._writer.drain()
            if self._eof:
                self._writer.write_eof()
        except OSError as error:
            raise ModalError(str(error)) from error


async def stream(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while data := await reader.read(5000):
        yield data


class ModalSandbox:
    def __init__(self, jail: list[str], tmp_path: Path) -> None:
        self._jail, self._tmp_path, self._running = jail, tmp_path, list[asyncio.subprocess.Process]()
        self.ended = False
        self.exec, self.terminate = Aio(self._exec), Aio(self._terminate)

    async def _exec(self, *argv: str, text: bool) -> Any:
        assert text is False
        if self.ended:
            raise ModalError("Sandbox has already finished")
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._jail, *argv, stdin=pipe, stdout=pipe, stderr=pipe
        )
        self._running.append(process)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        return SimpleNamespace(
            stdin=ModalStdin(process.stdin), stdout=stream(process.stdout), stderr=stream(process.stderr)
        )

    async def _terminate(self) -> None:
        self.ended = True
        end_all(self._tmp_path)
        for process in self._running:
            await process.wait()


@pytest.fixture
def modal(jail: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a sandbox was made with, and the sandbox."""
    made: dict[str, Any] = {}

    async def lookup(name: str, create_if_missing: bool) -> str:
        return f"app {name}"

    async def create(**arguments: Any) -> ModalSandbox:
        if arguments["image"] == "nosuch":
            raise ModalError("Image build failed")
        made.update(arguments, sandbox=ModalSandbox(jail, tmp_path))
        sandbox: ModalSandbox = made["sandbox"]
        return sandbox

    sdk = ModuleType("modal")
    sdk.__spec__ = sys.__spec__  # it is found, as an installed one
    vars(sdk).update(
        App=SimpleNamespace(lookup=Aio(lookup)),
        Image=SimpleNamespace(from_registry=lambda name: name),
        Sandbox=SimpleNamespace(create=Aio(create)),
        exception=SimpleNamespace(Error=ModalError),
    )
    monkeypatch.setitem(sys.modules, "modal", sdk)
    return made


def test_modal_keeps_the_promises(modal: dict[str, Any], files: Path) -> None:
    run(SandboxConfig("modal", image="python:3.12"), lambda made: keeps_the_promises(made, files))
    assert (modal["app"], modal["image"], modal["block_network"]) == ("app rl-cli", "python:3.12", True)
    assert (modal["cpu"], modal["memory"]) == (None, (2048, 2048))
    assert modal["sandbox"].ended


def test_modal_that_ends_in_the_middle_is_gone(modal: dict[str, Any]) -> None:
    async def test(made: Sandbox) -> None:
        running = asyncio.create_task(made.run("echo begin; sleep 600", 600))
        await asyncio.sleep(1)
        await modal["sandbox"].terminate.aio()
        with pytest.raises(SandboxGone, match="already finished"):
            await asyncio.wait_for(running, DEADLINE)

    run(SandboxConfig("modal", image="python:3.12"), test)
    with pytest.raises(SandboxError, match="Image build failed"):
        run(SandboxConfig("modal", image="nosuch"), test)


# Daytona: an SDK and its ssh access


@pytest.fixture
def daytona(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What sandboxes were made with, and which are there."""
    seen: dict[str, Any] = {"there": 0}
    options = sshd.options

    class Client:
        async def create(self, parameters: SimpleNamespace) -> Any:
            if parameters.image == "nosuch":
                raise DaytonaError("Image not found")
            seen.update(vars(parameters))
            seen["there"] += 1
            return SimpleNamespace(create_ssh_access=access)

        async def delete(self, sandbox: Any) -> None:
            seen["there"] -= 1

        async def close(self) -> None:
            pass

    async def access(expires_in_minutes: int) -> Any:
        return SimpleNamespace(
            ssh_command=f"ssh -p {options['port']} {options['user']}@{options['host']}",
        )

    class DaytonaError(Exception):
        pass

    sdk = ModuleType("daytona")
    sdk.__spec__ = sys.__spec__  # it is found, as an installed one
    vars(sdk).update(
        AsyncDaytona=Client,
        CreateSandboxFromImageParams=SimpleNamespace,
        Resources=SimpleNamespace,
        DaytonaError=DaytonaError,
    )
    monkeypatch.setitem(sys.modules, "daytona", sdk)
    # The real access lets in whoever has the token; this sshd wants a key.
    ssh = shutil.which("ssh")
    folder = sshd.far.parent / "programs"
    folder.mkdir(exist_ok=True)
    words = f"-i '{options['identity_file']}' -o UserKnownHostsFile='\"{options['known_hosts']}\"'"
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {ssh} {words} "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return seen


def test_daytona_keeps_the_promises(daytona: dict[str, Any], sshd: Sshd, files: Path) -> None:
    config = SandboxConfig("daytona", image="python:3.12", resources=Resources(cpus=0.5, memory_mib=1500))
    run(config, lambda made: keeps_the_promises(made, files))
    assert (daytona["image"], daytona["network_block_all"], daytona["ephemeral"]) == (
        "python:3.12",
        True,
        True,
    )
    assert vars(daytona["resources"]) == {"cpu": 1, "memory": 2, "disk": 1}
    assert daytona["there"] == 0
    SshPlace(sshd).see_nothing_left()


def test_daytona_that_cannot_make_one_says_why(daytona: dict[str, Any]) -> None:
    with pytest.raises(SandboxError, match="Image not found"):
        run(SandboxConfig("daytona", image="nosuch"), lambda made: made.run("true", DEADLINE))
    assert daytona["there"] == 0


@pytest.mark.parametrize("kind", ["modal", "daytona"])
def test_without_its_sdk_a_kind_says_how_to_get_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, kind, ("no_such_module",))
    kinds.usable.cache_clear()
    with pytest.raises(SandboxError, match=rf"\[{kind}\]"):
        kinds.make(SandboxConfig(kind, image="x"))
    kinds.usable.cache_clear()
