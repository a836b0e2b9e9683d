"""An agent between two tasks."""

from __future__ import annotations

import os
import signal
import socket
from dataclasses import dataclass


@dataclass
class IdleAgent:
    """One that has been set up, and has no task."""

    end: socket.socket
    pidfd: int

    def waits(self) -> bool:
        """Whether it is there for another task; goes on where a command had stopped it."""
        try:
            signal.pidfd_send_signal(self.pidfd, signal.SIGCONT)
            self.end.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # it has hung up

    def close(self) -> None:
        """It then ends."""
        self.end.close()
        os.close(self.pidfd)
