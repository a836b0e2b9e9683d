"""The kinds of sandboxes, and which of them this machine can use. None is replaced by another silently."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from rl_cli.core.errors import did_you_mean
from tools.sandboxes.base import Sandbox, SandboxConfig, SandboxError

KINDS = {
    "bubblewrap": "Bubblewrap",
    "docker": "Docker",
    "ssh": "Ssh",
    "apptainer": "Apptainer",
    "modal": "Modal",
    "daytona": "Daytona",
    "local": "Local",
}
"""Name of a kind, which is also its module, and its class there."""
DEFAULT = "bubblewrap"


def make(config: SandboxConfig) -> Sandbox:
    """A sandbox that has not been started.

    Raises:
        SandboxError: There is no such kind, or it cannot be used on this machine: why.
    """
    if (why := usable(config.kind)) is not None:
        others = [kind for kind in KINDS if kind != config.kind and usable(kind) is None]
        hint = f"mend that, or choose another kind: {', '.join(others)}" if others else None
        raise SandboxError(f"{config.kind} cannot be used on this machine: {why}", hint)
    if config.workdir is not None and (real := config.workdir.resolve()) != config.workdir:
        # What was allowed for one folder is not for another that a link leads to by now.
        raise SandboxError(f"{config.workdir} is no absolute path without links", f"name the folder: {real}")
    sandbox: Sandbox = _class(config.kind)(config)
    return sandbox


@cache
def usable(kind: str) -> str | None:
    """Why a kind cannot be used on this machine; None: it can. Looked at once, which may take a second.

    Raises:
        SandboxError: There is no such kind.
    """
    why: str | None = _class(kind).why_not()
    return why


def _class(kind: str) -> Any:
    if kind not in KINDS:
        raise SandboxError(f"there is no kind of sandbox '{kind}'", did_you_mean(kind, list(KINDS)))
    return getattr(import_module(f"tools.sandboxes.{kind}"), KINDS[kind])
