"""Sets up the place of a task, once, before its first command: limits, file systems, no rights."""

from __future__ import annotations

import _signal  # what `signal` is made of, without the enums, which take longer than all else here
import os
import resource
import stat

from .kernel import (
    CLONE_NEWUSER,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_RDONLY,
    MS_REMOUNT,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    drop_capabilities,
    drop_capability_bounds,
    filter_calls,
    mount,
    prctl,
    unshare,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/mtrr")
"""Root may change them without having any right, in whatever namespace."""
KEYS = ("/proc/keys", "/proc/key-users")


def set_up(settings: dict[str, Any]) -> None:
    """Gives the task its limits and its place, then lets go of every right; all commands inherit that.

    Raises:
        OSError, ValueError: It cannot be made so.
    """
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    user = settings["user"]
    if space := settings["space"]:
        make_space(space, None if user["namespace"] else (user["uid"], user["gid"]))
    for name, value in settings["rlimits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    if user:
        give_up_rights(**user)
        filter_calls(settings["filter"])
        prctl(PR_SET_PDEATHSIG, _signal.SIGKILL)  # a change of user has cleared it
    prctl(PR_SET_DUMPABLE, 0)  # commands run as the same user: none may look into this process


def make_space(space: dict[str, Any], owner: tuple[int, int] | None) -> None:
    """One file system of limited size in memory, seen in several places; the rest becomes read-only."""
    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, space["options"])
    for number, (target, mode) in enumerate(space["folders"]):
        folder = f"/tmp/{number}"
        os.mkdir(folder)
        os.chmod(folder, mode)
        if owner is not None:
            os.chown(folder, *owner)
        os.makedirs(target, exist_ok=True)
        mount(folder, target, "", MS_BIND)
    if bound := space["bound"]:
        os.makedirs(bound[1], exist_ok=True)
        mount(bound[0], bound[1], "", MS_BIND)
    for place in filter(os.path.exists, KERNEL_SETTINGS):
        mount(place, place, "", MS_BIND)
    for place in (*filter(os.path.exists, KEYS), *for_root_alone()):
        mount("/dev/null", place, "", MS_BIND)
    for place in filter(os.path.exists, ("/dev", "/", *KERNEL_SETTINGS)):
        mount("", place, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)


def for_root_alone() -> list[str]:
    """What /proc shows of the whole machine to no user but root."""
    files = [entry for entry in os.scandir("/proc") if entry.is_file(follow_symlinks=False)]
    return [entry.path for entry in files if not entry.stat().st_mode & stat.S_IROTH]


def give_up_rights(uid: int, gid: int, namespace: bool) -> None:
    """Becomes a user without any right.

    Args:
        namespace: Whether all this is in a user namespace, as its only user: a second one gives the number.
    """
    if namespace:
        maps = {"uid_map": f"{uid} {os.getuid()} 1", "setgroups": "deny", "gid_map": f"{gid} {os.getgid()} 1"}
        unshare(CLONE_NEWUSER, "a second user namespace")
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    else:
        os.setgroups([])
        drop_capability_bounds()
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    drop_capabilities()
    prctl(PR_SET_NO_NEW_PRIVS, 1)
