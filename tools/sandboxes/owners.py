"""Whose a container or a far folder is, so that what a killed process left behind can be told and removed."""

from __future__ import annotations

import hashlib
import os

from rl_cli.core.processes import ProcessIdentity


def owner(process: ProcessIdentity | None = None) -> str:
    """A process, or this one, as letters, digits and dashes."""
    process = process or ProcessIdentity.current()
    return f"{_machine(process)}-{process.pid}-{round(process.started * 100)}"


def is_left_over(mark: str) -> bool:
    """Whether `mark` is that of a process that has ended, if only by a restart of the machine.

    Of processes whose pids are those of another machine or container, nobody here can say that.
    """
    try:
        machine, pid, started = mark.split("-")
        host, _, boot = machine.partition("x")
        number, hundredths = int(pid), int(started)
    except ValueError:
        return False
    mine_host, _, mine_boot = _machine(ProcessIdentity.current()).partition("x")
    if host != mine_host:
        return False
    if boot != mine_boot:
        return True
    try:
        return round(ProcessIdentity.of(number).started * 100) != hundredths
    except ProcessLookupError:
        return True


def _machine(identity: ProcessIdentity) -> str:
    return f"{_short(identity.host + _pid_namespace())}x{_short(identity.boot)}"


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:  # a system without
        return ""


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
