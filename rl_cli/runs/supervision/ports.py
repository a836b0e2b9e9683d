"""Free TCP ports of this machine, each given to one run only.

A port is claimed by an abstract Unix socket of its name: the kernel knows it as long as the claimer lives, in
the same network namespace as the port, and nothing is left behind. Where there are none (not Linux), two
runs that start at the same moment could be given the same port.
"""

from __future__ import annotations

import socket
import sys

TRIES = 50


class Port:
    """A port that was free when it was chosen, claimed until this process ends.

    Raises:
        OSError: None can be had.
    """

    def __init__(self) -> None:
        for _ in range(TRIES):
            number = _free()
            claim = _claim(number)
            if claim is not None:
                self.number, self._claim = number, claim
                return
        raise OSError(f"no free port of 127.0.0.1 was found in {TRIES} tries")


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def _claim(number: int) -> socket.socket | None:
    """A socket to hold; None if another run has the port."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if sys.platform != "linux":
        return claim
    try:
        claim.bind(f"\0rl-cli-port-{number}")
    except OSError:
        claim.close()
        return None
    return claim
