"""Whose a container or a far folder is, so that what a killed process left behind can be told and removed."""

from __future__ import annotations

import hashlib

from rl_cli.core.processes import ProcessIdentity


def owner() -> str:
    """This process, as letters, digits and dashes."""
    me = ProcessIdentity.current()
    return f"{_machine(me)}-{me.pid}-{round(me.started * 100)}"


def is_left_over(mark: str) -> bool:
    """Whether `mark` is that of a process of this machine that has ended, if only by a restart."""
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
    return f"{_short(identity.host)}x{_short(identity.boot)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
