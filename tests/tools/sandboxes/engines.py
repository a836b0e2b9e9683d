"""A real sshd on loopback and a real container engine, each with settings and storage of the test's own."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import shutil
import socket
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.components import leave_out

IMAGE = "localhost/rl-cli-test:latest"
KEEPER = "keeper"
"""A container that is always there: with the last one podman takes down a mount of its own."""
START_SECONDS = 60.0

_SSHD = """\
Port {port}
ListenAddress 127.0.0.1
HostKey "{folder}/host_key"
AuthorizedKeysFile "{folder}/key.pub"
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication yes
KexAlgorithms curve25519-sha256
SetEnv TMPDIR={folder}/far HOME={folder}
"""

_CONTAINERS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{folder}/tmp"
network_config_dir = "{folder}/networks"
"""
_STORAGE = '[storage]\ndriver = "{driver}"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n'


@dataclass
class Sshd:
    """A server that lets in the account that runs the tests."""

    options: dict[str, str]
    """For SandboxConfig."""
    far: Path
    """Where tasks get their folders."""
    process: subprocess.Popen[bytes]

    def connections(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()


@contextmanager
def sshd(folder: Path) -> Iterator[Sshd]:
    program = shutil.which("sshd") or shutil.which("/usr/sbin/sshd")
    if not program or not shutil.which("ssh-keygen"):
        leave_out("sshd")
    assert program
    for name in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "far").mkdir()
    settings = folder / "sshd_config"
    settings.write_text(_SSHD.format(port=port, folder=folder))
    known = folder / "known hosts"  # a space, as in many a person's home
    known.write_text(f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text()}")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    log = (folder / "log").open("wb")
    process = subprocess.Popen([program, "-D", "-e", "-f", str(settings)], stderr=log)
    try:
        wait_until(lambda: _answers(port), f"sshd does not answer: {folder / 'log'}")
        yield Sshd(
            {
                "host": "127.0.0.1",
                "port": str(port),
                "user": getpass.getuser(),
                "identity_file": str(folder / "key"),
                "known_hosts": str(known),
            },
            folder / "far",
            process,
        )
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.kill()
        process.kill()
        process.wait()
        log.close()


@dataclass
class Podman:
    """An engine with one image, IMAGE: busybox and nothing else."""

    env: Mapping[str, str]
    """What `docker` and `podman` need to find it."""
    folder: Path
    service: subprocess.Popen[bytes] | None = None

    def podman(self, *arguments: str) -> str:
        done = subprocess.run(
            ["podman", *arguments], env={**os.environ, **self.env}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def containers(self) -> list[str]:
        """All but its own."""
        rows = json.loads(self.podman("ps", "--all", "--format", "json"))
        return [name for row in rows if (name := row["Names"][0]) != KEEPER]

    def serve(self) -> None:
        """Starts what docker's command talks to."""
        assert self.service is None
        address = self.env["DOCKER_HOST"]
        Path(address.removeprefix("unix://")).unlink(missing_ok=True)
        with (self.folder / "service.log").open("ab") as log:
            self.service = subprocess.Popen(
                ["podman", "system", "service", "--time", "0", address],
                env={**os.environ, **self.env},
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
            )
        wait_until(lambda: _listens(address.removeprefix("unix://")), "podman's service does not answer")

    def end_service(self) -> None:
        if self.service:
            self.service.kill()
            self.service.wait()
            self.service = None

    def end(self) -> None:
        self.end_service()
        subprocess.run(
            ["podman", "rm", "--all", "--force", "--time", "0"],
            env={**os.environ, **self.env},
            capture_output=True,
        )
        # For minutes, the service keeps a process of its own for each command that was executed.
        for process in psutil.process_iter(["name", "cmdline"]):
            if process.info["name"] == "conmon" and f"{self.folder}/" in " ".join(
                process.info["cmdline"] or []
            ):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        graph = self.folder / "graph"
        subprocess.run(["umount", str(graph / "overlay")], capture_output=True)


@contextmanager
def podman(folder: Path) -> Iterator[Podman]:
    """As root only: without, it wants ranges of user ids that few machines have set up."""
    for program in ("podman", "runc", "busybox"):
        if not shutil.which(program):
            leave_out(program)
    if os.geteuid() != 0:
        leave_out("podman as root")
    (folder / "containers.conf").write_text(_CONTAINERS.format(folder=folder))
    engine = Podman(
        {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "DOCKER_HOST": f"unix://{folder}/socket",
        },
        folder,
    )
    tar = _image(folder)
    for driver in ("overlay", "vfs"):
        (folder / "storage.conf").write_text(_STORAGE.format(driver=driver, folder=folder))
        try:
            engine.podman("import", str(tar), IMAGE)
            engine.podman("run", "--detach", "--name", KEEPER, "--network", "none", IMAGE, "sleep", "100000")
            break
        except AssertionError as error:
            reason = str(error).strip().splitlines()[-1:]
            shutil.rmtree(folder / "graph", ignore_errors=True)
    else:
        leave_out(f"a podman that can start a container: {reason}")
    try:
        if shutil.which("docker"):
            engine.serve()
        yield engine
    finally:
        engine.end()


def _image(folder: Path) -> Path:
    """A tar of a root file system in which busybox is every program."""
    program = shutil.which("busybox")
    assert program
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    path = folder / "image.tar"
    with tarfile.open(path, "w") as tar:
        for name in ("bin", "tmp", "etc", "root"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(entry)
        tar.add(os.path.realpath(program), "bin/busybox")
        for applet in sorted(set(applets) - {"busybox"}):
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(entry)
    return path


def wait_until(condition: Callable[[], object], message: str, seconds: float = START_SECONDS) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, message
        time.sleep(0.02)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _listens(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
