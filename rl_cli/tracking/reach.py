"""Whether it makes sense to ask W&B at all: known within seconds, before the SDK is loaded."""

from __future__ import annotations

import os
import socket
import threading
from urllib.parse import urlsplit

from rl_cli.runs.supervision.tracking_mode import address_problem, has_key, key_problem, server_address
from rl_cli.tracking.errors import WandbError

CONNECT_SECONDS = 3.0
"""For finding the server's address and a connection together; a server that lives answers within one."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def must_make_sense(deadline: float) -> None:
    """Raises WandbError: there is no key, it cannot be one, or the server takes no connection.

    Args:
        deadline: Seconds; the server gets CONNECT_SECONDS of them at most.
    """
    if problem := address_problem():
        raise WandbError("down", problem)
    if not has_key():
        raise WandbError("no_key", "no W&B key was found")
    if problem := key_problem():
        raise WandbError("wrong_key", f"the W&B key cannot be right: {problem}")
    address = server_address()
    if why := _unreachable(address, min(CONNECT_SECONDS, deadline)):
        raise WandbError("down", f"W&B at {address} cannot be reached: {why}")


def _unreachable(address: str, seconds: float) -> str | None:
    """Why the server takes no connection; None if it does, or only a proxy could tell."""
    if any(os.environ.get(name) or os.environ.get(name.lower()) for name in PROXIES):
        return None
    url = urlsplit(address)
    said: list[str | None] = []

    def connect() -> None:
        try:
            port = url.port or (443 if url.scheme == "https" else 80)
            with socket.create_connection((url.hostname or "", port), timeout=seconds):
                said.append(None)
        except (OSError, ValueError, UnicodeError) as error:
            said.append(getattr(error, "strerror", None) or str(error) or type(error).__name__)

    thread = threading.Thread(target=connect, daemon=True)  # finding an address has no deadline
    thread.start()
    thread.join(seconds + 0.1)
    return said[0] if said else f"no connection within {seconds:g} s"
