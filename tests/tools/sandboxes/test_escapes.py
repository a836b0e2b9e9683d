"""Commands that try to get out of bubblewrap, or to take more than they may.

As whoever runs the tests, and again as a user without rights where that is root.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.components import leave_out, mounts
from tests.tools.sandboxes.leftovers import nothing_left
from tools.sandboxes.agent_sandbox import AgentSandbox
from tools.sandboxes.base import CommandResult, Resources, SandboxConfig
from tools.sandboxes.kinds import make, usable

SECONDS = 60.0
SMALL = Resources(memory_mib=200, disk_mib=16, processes=64)
PYTHON = "$(command -v python3 || echo /opt/rl-cli/python/bin/python3.*)"
A_USER = "61234"
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _bubblewrap_works() -> None:
    if why := usable("bubblewrap"):
        leave_out(f"bubblewrap ({why})")


def in_bubblewrap(
    test: Callable[[AgentSandbox], Awaitable[None]], well: bool = True, **settings: Any
) -> None:
    """Runs a test in a sandbox, which must leave nothing behind, and be well after it."""

    async def main() -> None:
        made = make(SandboxConfig(kind="bubblewrap", **settings))
        assert isinstance(made, AgentSandbox)
        await made.start()
        try:
            await test(made)
            assert not well or (await made.run("echo well", SECONDS)).stdout.text == "well\n"
        finally:
            await made.stop()

    with nothing_left():
        asyncio.run(main())


def result_of(command: str, seconds: float = SECONDS, **settings: Any) -> CommandResult:
    results = []

    async def test(made: AgentSandbox) -> None:
        results.append(await made.run(command, seconds))

    in_bubblewrap(test, **settings)
    return results[0]


def test_files_of_the_host_cannot_be_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("a-secret-of-the-host")
    tries = "; ".join(
        f"cat '{place}{secret}'"
        for place in (
            "",
            "/proc/1/root",
            "/proc/self/root",
            "/proc/1/cwd",
            "/tmp/../..",
            "/run/rl-cli-workdir",
        )
    )
    links = f"ln -s {secret} l; cat l; ln -s / r; cat r{secret}"
    result = result_of(
        f"{tries}; {links}; ls -A /root; ls /home; ls -d {Path.home()}/.[a-z]*; cat /etc/shadow"
    )
    assert result.stdout.text == "sandbox\n"
    assert result.exit_code != 0


def test_secrets_of_the_host_are_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "a-secret-of-the-host")
    result = result_of("env; cat /proc/*/environ /proc/*/cmdline; set")
    assert result.stdout.size > 0
    assert "secret" not in result.stdout.text


FORBIDDEN = [
    "touch /x",
    "touch /usr/x",
    "touch /etc/x",
    "touch /dev/x",
    "touch /root/x",
    "touch /opt/rl-cli/x",
    "echo >>/opt/rl-cli/agent/serving.py",
    "echo >>/etc/passwd",
    "echo x >/proc/sys/kernel/hostname",
    "echo x >/proc/sysrq-trigger",
    "cat /proc/sys/kernel/core_pattern >/proc/sys/kernel/core_pattern",
    "for f in /proc/*; do [ -f $f ] && [ -w $f ] && exit; done; exit 1",
    "hostname escaped",
    "mount -t tmpfs none /tmp",
    "mount -o remount,rw /",
    "umount /tmp",
    "mknod /tmp/n b 254 0",
    "chroot /tmp /bin/true",
    "unshare -r true",
    "unshare -Urm true",
    "unshare -n true",
    "nsenter -t 1 -m true",
    "chown 1 /tmp",
    "cat /proc/1/environ",
    "cat /proc/1/maps",
    "ls -l /proc/1/fd/",
    "cat /dev/mem /dev/kmsg /dev/vda /dev/sda",
    "dmesg",
]


@pytest.mark.parametrize("whose", ["nobody's", "a folder's owner"])
def test_nothing_outside_can_be_changed_nor_rights_gained(whose: str, tmp_path: Path) -> None:
    async def test(made: AgentSandbox) -> None:
        for command in FORBIDDEN:
            result = await made.run(command, SECONDS)
            assert result.exit_code not in (0, None), f"{command}: {result.stdout.text}"

    in_bubblewrap(test, workdir=None if whose == "nobody's" else tmp_path)


def test_no_user_has_rights_and_programs_give_none(tmp_path: Path) -> None:
    for workdir in (None, tmp_path):
        status = result_of(
            "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status", workdir=workdir
        ).stdout.text
        fields = dict(line.split(":\t") for line in status.splitlines())
        assert {fields[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0" * 16}
        assert (fields["NoNewPrivs"], fields["Seccomp"]) == ("1", "2")


def test_the_agent_cannot_be_touched() -> None:
    trace = "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))"
    result = result_of(f'kill -9 1; kill -STOP 1; kill -TERM 1; {PYTHON} -c "{trace}"; kill -9 -1')
    assert result.stdout.text == "-1\n"


def test_the_agent_is_given_no_limits(tmp_path: Path) -> None:
    async def test(made: AgentSandbox) -> None:
        for limit in ("rttime=5:5", "nofile=4:4", "data=1:1", "cpu=1:1", "nproc=0:0"):
            command = f"prlimit --pid 1 --{limit} || echo refused; prlimit --pid $$ --{limit}"
            assert (await made.run(command, SECONDS)).stdout.text.startswith("refused\n"), limit

    in_bubblewrap(test, workdir=tmp_path)


def test_no_program_gets_a_setuid_or_setgid_bit(tmp_path: Path) -> None:
    program = """
import os
for number, make in enumerate((
    lambda mode: os.chmod("x", mode),
    lambda mode: os.fchmod(os.open("x", os.O_RDONLY), mode),
    lambda mode: os.chmod("x", mode, dir_fd=os.open(".", os.O_RDONLY)),
    lambda mode: os.close(os.open(f"opened {mode}", os.O_CREAT | os.O_WRONLY, mode)),
    lambda mode: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY, mode)),
    lambda mode: os.mknod(f"made {mode}", 0o100000 | mode),
)):
    make(0o1755)
    for mode in (0o4755, 0o2755):
        try:
            make(mode)
        except PermissionError:
            print("refused")
os.open("x", os.O_RDONLY, 0o6755)
"""

    async def test(made: AgentSandbox) -> None:
        result = await made.run(f"touch x; {PYTHON} -", SECONDS, stdin=program.encode())
        assert (result.exit_code, result.stdout.text) == (0, "refused\n" * 12), result.stderr.text
        assert (await made.run("cp /bin/sh y; chmod 6755 y", SECONDS)).exit_code != 0

    in_bubblewrap(test, workdir=tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.stat().st_mode & 0o6000]
    assert (tmp_path / "x").stat().st_mode & 0o7777 == 0o1755


def test_nobody_reads_what_is_for_root_alone(tmp_path: Path) -> None:
    result = result_of(
        "cd /proc; cat keys key-users timer_list vmallocinfo slabinfo kpagecount", workdir=tmp_path
    )
    assert result.stdout.text == ""


@pytest.mark.parametrize("network", [False, True])
def test_the_network_is_there_only_where_it_is_allowed(network: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unnamed:
        unnamed.bind("\0rl-cli-test-" + os.urandom(8).hex())
        unnamed.listen()
        port, name = server.getsockname()[1], unnamed.getsockname().decode()
        program = f"""
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", {port})), (socket.AF_UNIX, {name!r})):
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError as error:
        print(type(error).__name__)
"""

        async def test(made: AgentSandbox) -> None:
            result = await made.run(f"cat >p; {PYTHON} p; ls /sys/class/net", SECONDS, stdin=program.encode())
            assert result.stdout.text == ("connected\n" if network else "ConnectionRefusedError\n") * 2

        in_bubblewrap(test, network=network)


def test_processes_of_the_host_are_not_seen_and_cannot_be_signalled() -> None:
    with subprocess.Popen(["sleep", "600"]) as bystander:
        try:
            result = result_of(
                f"kill -9 {bystander.pid}; kill -9 {os.getpid()}; ls -d /proc/[0-9]* | wc -l; kill -9 -1"
            )
            assert int(result.stdout.text) <= 5
            assert bystander.poll() is None
        finally:
            bystander.kill()


MANY_FILES = """
import os
for i in range(100_000):
    try:
        open(f"/tmp/{i}", "x").close()
        os.mkdir(os.path.expanduser(f"~/{i}"))
    except OSError:
        print(i)
        break
"""


def test_the_disk_cannot_be_filled_beyond_its_limit() -> None:
    fill = (
        "for p in /tmp /dev/shm ~ /workspace /var/tmp; do head -c 100000000 /dev/zero >$p/f; done 2>/dev/null"
    )
    fill += "; cat /tmp/f /dev/shm/f ~/f f | wc -c"
    assert 8 * 2**20 <= int(result_of(fill, resources=SMALL).stdout.text) <= 16 * 2**20
    assert (
        500 <= int(result_of(f"{PYTHON} -c '{MANY_FILES}'", resources=SMALL).stdout.text) <= 16 * 2**20 / 4096
    )


def test_a_fork_bomb_is_bounded_and_ended() -> None:
    async def test(made: AgentSandbox) -> None:
        bomb = asyncio.create_task(made.run("f() { f | f & }; f; while :; do sleep 1 & done", 3))
        most = 0
        while not bomb.done():
            await asyncio.sleep(0.2)
            most = max(most, len(psutil.Process().children(recursive=True)))
            assert most <= 64 + 10
        assert (await made.run("echo no room", SECONDS)).exit_code in (0, 126)

    in_bubblewrap(test, resources=SMALL, well=False)


def test_a_memory_bomb_is_bounded() -> None:
    grow = "b = []\nwhile True: b.append(bytearray(10**7)); print(len(b), flush=True)"

    async def test(made: AgentSandbox) -> None:
        one = await made.run(f'{PYTHON} -c "{grow}"', SECONDS)
        assert one.exit_code != 0
        assert 5 <= int(one.stdout.text.split()[-1]) <= 20
        if "memory_mib" not in made.unbounded:
            keep = f'{PYTHON} -c "b = bytearray(10**8); import time; time.sleep(1); print(1)"'
            many = await made.run(f"for i in 1 2 3 4 5 6; do {keep} & done; wait", SECONDS)
            assert many.stdout.text.count("1") <= 2

    in_bubblewrap(test, resources=SMALL)


def test_memory_of_no_process_does_not_end_the_sandbox() -> None:
    fill = """
import ctypes, os
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
kept = libc.shmat(libc.shmget(0, ctypes.c_size_t(150 << 20), 0o1600), None, 0)
ctypes.memset(ctypes.c_void_p(kept), 1, 150 << 20)
file = os.memfd_create("x")
for _ in range(500):
    os.write(file, bytes(1 << 20))
"""

    async def test(made: AgentSandbox) -> None:
        result = await made.run(f"exec {PYTHON} -", SECONDS, stdin=fill.encode())
        assert "memory_mib" in made.unbounded or result.exit_code == 137

    in_bubblewrap(test, resources=SMALL)


def test_the_same_as_a_user() -> None:
    """All of this file, by a user without rights, who must be able to read what runs it."""
    if os.geteuid() != 0:
        return
    mounts()
    if not shutil.which("setpriv"):
        leave_out("setpriv")
    # A folder that only root may enter, on the way to the interpreter, is one that has nothing else in it.
    closed = [p for p in Path(os.path.realpath(sys.executable)).parents if not p.stat().st_mode & 1]
    opening = ""
    for folder in closed[:1]:
        inside = Path(os.path.realpath(sys.base_prefix))
        opening = f"""
mount --bind {inside} /mnt && mount -t tmpfs -o mode=755 none {folder}
mkdir -p {inside} && mount --move /mnt {inside} || exit 99
"""
    script = f"""
mount --make-rprivate / {opening}
exec setpriv --reuid {A_USER} --regid {A_USER} --clear-groups "$@"
"""
    tests = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/nonexistent",
        "RL_CLI_REQUIRE_ALL": os.environ.get("RL_CLI_REQUIRE_ALL", ""),
    }
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *tests],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
