"""How a run is tracked in W&B, and what the processes that do it find in their environment."""

from __future__ import annotations

import netrc
import os
import re
from collections.abc import Mapping
from typing import Literal
from urllib.parse import urlsplit

from rl_cli.core.own_process import without_secrets

Mode = Literal["live", "online", "offline", "off"]
CLOUD = "https://api.wandb.ai"
KEY_LENGTH = 40
_TOKEN = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+")
"""A JWT, which some servers take for a key."""
OF_OTHERS = (
    "DEBUG",
    "CORE_DEBUG",
    "MODE",
    "SERVICE",
    "RUN_ID",
    "RESUME",
    "NAME",
    "DIR",
    "SILENT",
    "DISABLED",
)
"""WANDB_ variables of somebody's own run; the first two would make wandb write its key into logs."""


def wanted_mode(tracking: str, backend: str | None = None) -> Mode:
    """The mode; without a key nothing can go to W&B now: offline. Figures of a replay are nobody's results.

    Args:
        tracking: The config's tracking.wandb; a replay is uploaded only where that says so: `auto` does not.
        backend: The config's backend.name.
    """
    by_environment = os.environ.get("WANDB_MODE") if tracking == "auto" else None
    if tracking == "off" or os.environ.get("WANDB_MODE") == "disabled":
        return "off"
    if tracking == "offline" or by_environment == "offline" or not has_key():
        return "offline"
    if backend == "replay" and tracking == "auto":
        return "offline"
    return "online" if tracking == "online" else "live"


def server_address() -> str:
    """Where W&B is asked, without a password that may stand in the address."""
    given = os.environ.get("WANDB_BASE_URL") or CLOUD
    try:
        url = urlsplit(given)
    except ValueError:  # no address at all: see address_problem()
        return given.rpartition("@")[2]
    return url._replace(netloc=url.netloc.rpartition("@")[2]).geturl()


def address_problem() -> str | None:
    """Why the address of W&B cannot be one; None if it may be."""
    address = server_address()
    try:
        url = urlsplit(address)
        right = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        right = False
    return None if right else f"WANDB_BASE_URL, {address}, is no http:// or https:// address"


def has_key() -> bool:
    """Whether there is a W&B key: WANDB_API_KEY, or `wandb login` has left one in ~/.netrc."""
    return _key() is not None or bool(os.environ.get("WANDB_IDENTITY_TOKEN_FILE"))


def key_problem() -> str | None:
    """Why the key cannot be one, whatever the server says; None if it may be one, or there is none."""
    key = _key()
    if key is None or _TOKEN.fullmatch(key):
        return None
    secret = key.split("-", 1)[-1]  # a server of one's own may put a name before it
    if not re.fullmatch(r"[\w-]*", secret):
        return "a key has letters, digits and underscores only"
    if len(secret) < KEY_LENGTH:
        return f"a key has {KEY_LENGTH} characters or more, this one has {len(secret)}"
    return None


def _key() -> str | None:
    if key := os.environ.get("WANDB_API_KEY"):
        return key
    if address_problem():
        return None
    host = urlsplit(server_address()).netloc
    file = os.environ.get("NETRC")
    try:
        found = netrc.netrc(os.path.expanduser(file) if file else None).authenticators(host)
    except (OSError, netrc.NetrcParseError):  # no such file, or not readable as one: no key
        return None
    return found[2] if found else None


def environment_for(key: bool) -> Mapping[str, str | None]:
    """Variables of a process of ours that runs the wandb SDK; None takes one out.

    Args:
        key: Whether it talks to W&B, and so may know the key.
    """
    theirs = {f"WANDB_{name}": None for name in OF_OTHERS}
    secret = without_secrets(os.environ, "WANDB_" if key else "\0")
    return {**theirs, **secret, "WANDB_ERROR_REPORTING": "false"}
