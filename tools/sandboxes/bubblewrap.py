"""Commands run on this machine in namespaces of their own, with a read-only system and the task's files."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

from tools.sandboxes.agent_link import Launch
from tools.sandboxes.agent_sandbox import AgentSandbox, why_no_agent
from tools.sandboxes.agent_start import FOLDER, PACKAGE, python_words, spawn
from tools.sandboxes.base import MIB, SandboxConfig
from tools.sandboxes.call_filter import call_filter, why_no_filter

HOME, WORK, PRIVATE = "/home/sandbox", "/workspace", "/run/rl-cli"
BOUND = "/run/rl-cli-workdir"
OURS = "/opt/rl-cli"
AGENT, PYTHON = f"{OURS}/{PACKAGE}", f"{OURS}/python"
SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
ETC = (
    *(
        "alternatives",
        "ca-certificates",
        "ssl/certs",
        "ssl/openssl.cnf",
        "pki/tls/certs",
        "pki/ca-trust/extracted",
    ),
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "protocols", "services", "mime.types"),
    *(
        "localtime",
        "timezone",
        "locale.alias",
        "fonts",
        "terminfo",
        "perl",
        "vim",
        "magic",
        "java-17-openjdk",
    ),
)
"""What programs need of it, and nothing that could hold a secret."""
FOLDERS = (
    *("/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/pki/ca-trust"),
    *("/opt", OURS, PYTHON, f"{PYTHON}/bin", "/home", "/root", "/run", "/tmp", "/var"),
)
"""Made before what is in them: bwrap would let nobody but their owner in."""
CAPABILITIES = ("SYS_ADMIN", "SYS_RESOURCE", "SETPCAP", "SETUID", "SETGID", "CHOWN", "SETFCAP")
"""What the agent needs to set up the place, and then gives up."""
BYTES_PER_FILE = 4096
"""As many files are allowed as there is room for files of this size, so that empty ones have a limit too."""
USER = 1000
"""The number of the task's user, in a user namespace."""
TRIAL_SECONDS = 20
OPEN_FILES = 4096
FIRST_UID, LAST_UID = 1_000_000_000, 2_000_000_000
"""Where root takes the users of tasks from, as far as this user namespace has them."""


class Bubblewrap(AgentSandbox):
    """Isolates files, processes, users and the network. It shares the host's kernel, with all its faults.

    Home, working folder, /tmp and /dev/shm share `disk_mib` in memory.
    """

    kind = "bubblewrap"
    isolates = True

    def __init__(self, config: SandboxConfig) -> None:
        super().__init__(config)
        self.workdir = WORK if config.workdir is None else str(config.workdir.resolve())
        self.private = PRIVATE

    @classmethod
    def why_not(cls) -> str | None:
        """Why it cannot be used on this machine; None: it can."""
        return _why_not()

    def _launch(self) -> Launch:
        self._user = _user_for(self.config.workdir)
        root = self._user["uid"] == 0  # has no limit of processes
        self._own_bounds = frozenset({"disk_mib"} if root else {"disk_mib", "processes"})
        uid, gid = self._user["uid"], self._user["gid"]
        files = {
            "/etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nsandbox:x:{uid}:{gid}:sandbox:{HOME}:/bin/sh\n"
            "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
            "/etc/group": f"root:x:0:\nsandbox:x:{gid}:\nnogroup:x:65534:\n",
            "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        }
        descriptors = []
        arguments = list(_arguments(self.config))
        for path, text in files.items():
            descriptor = os.memfd_create("file")
            descriptors.append(descriptor)
            os.write(descriptor, text.encode())
            os.lseek(descriptor, 0, os.SEEK_SET)
            arguments += ["--perms", "0644", "--ro-bind-data", str(descriptor), path]
        words = [_program(), *arguments, "--", _python(), *python_words("serving", OURS)]
        return partial(spawn, words, descriptors)

    def _settings(self) -> dict[str, Any]:
        resources = self.config.resources
        disk = (resources.disk_mib or 0) * MIB
        rlimits = {**self._rlimits(), "RLIMIT_NOFILE": OPEN_FILES}
        if resources.processes is not None:
            rlimits["RLIMIT_NPROC"] = resources.processes + 1  # and the agent
        folders = [(HOME, 0o755), (PRIVATE, 0o700), ("/dev/shm", 0o1777)]
        if self.config.workdir is None:
            folders.append((WORK, 0o755))
        space = {
            "options": f"mode=755,size={disk},nr_inodes={disk // BYTES_PER_FILE}",
            "folders": [*folders, ("/tmp", 0o1777)],  # the last, since it hides the rest of the file system
            "bound": None if self.config.workdir is None else (BOUND, self.workdir),
        }
        return {
            "space": space,
            "user": self._user,
            "rlimits": rlimits,
            "filter": call_filter(),
            "leave": {},
        }

    def _environment(self) -> dict[str, str]:
        return {"HOME": HOME, "USER": "sandbox", "LOGNAME": "sandbox", "TMPDIR": "/tmp"}

    def _clean_up(self) -> None:
        """The kernel has removed all of it."""


def _user_for(workdir: Path | None) -> dict[str, Any]:
    """Who commands are: as root the owner of the folder they may change, or a user whom nobody else is."""
    if os.geteuid() != 0:
        return {"uid": USER, "gid": USER, "namespace": True}
    if workdir is not None:
        owner = workdir.stat()
        return {"uid": owner.st_uid, "gid": owner.st_gid, "namespace": False}
    first, _, count = Path("/proc/self/uid_map").read_text().split()[-3:]
    last = min(LAST_UID, int(first) + int(count) - 1)
    uid = random.SystemRandom().randrange(FIRST_UID if last > FIRST_UID else last // 2, last)
    return {"uid": uid, "gid": uid, "namespace": False}


def _arguments(config: SandboxConfig) -> list[str]:
    """What bwrap is told: namespaces, what is seen of the system, the agent, the rights it starts with."""
    arguments = [
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--hostname",
        "sandbox",
    ]
    if not config.network:
        arguments.append("--unshare-net")
    if os.geteuid() != 0:
        arguments += ["--unshare-user", "--uid", "0", "--gid", "0"]
    for capability in CAPABILITIES:
        arguments += ["--cap-add", f"CAP_{capability}"]
    arguments += ["--die-with-parent", "--as-pid-1", "--proc", "/proc", "--dev", "/dev"]
    for folder in FOLDERS:
        arguments += ["--perms", "0755", "--dir", folder]
    for name in SYSTEM:
        path = f"/{name}"
        if os.path.islink(path):
            arguments += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            arguments += ["--ro-bind", path, path]
    for name in (*ETC, *(("resolv.conf",) if config.network else ())):
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    arguments += ["--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run"]
    if config.workdir is not None:
        arguments += ["--bind", str(config.workdir.resolve()), BOUND]
    arguments += ["--ro-bind", str(FOLDER / PACKAGE), AGENT]
    for source, target in _python_parts().items():
        arguments += ["--ro-bind", source, target]
    return arguments


def _python_parts() -> dict[str, str]:
    """What the agent needs of our own Python, by its place on the host; nothing if that is in the system."""
    prefix = os.path.realpath(sys.base_prefix)
    if prefix == "/usr" or prefix.startswith("/usr/"):
        return {}
    executable = _executable()
    return {str(executable): f"{PYTHON}/bin/{executable.name}", f"{prefix}/lib": f"{PYTHON}/lib"}


def _executable() -> Path:
    return Path(os.path.realpath(getattr(sys, "_base_executable", sys.executable)))


@cache
def _why_not() -> str | None:
    if why := why_no_agent():
        return why
    if shutil.which("bwrap") is None:
        return "bwrap is not installed (package bubblewrap)"
    if why := why_no_filter():
        return why
    tried = [_program(), *_arguments(SandboxConfig(kind="bubblewrap")), "--", _python(), "-I", "-S", "-c", ""]
    try:
        done = subprocess.run(tried, stdin=subprocess.DEVNULL, capture_output=True, timeout=TRIAL_SECONDS)
    except subprocess.TimeoutExpired:
        return "bwrap does not come back"
    if done.returncode == 0:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"bwrap ended with {done.returncode}"


def _program() -> str:
    return shutil.which("bwrap") or "bwrap"


def _python() -> str:
    executable = _executable()
    return f"{PYTHON}/bin/{executable.name}" if _python_parts() else str(executable)
