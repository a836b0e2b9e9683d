"""The process that forks agents: a task then takes no start of Python.

One for each program of the host, which hands it the agent's end of a link for each task. What an agent leaves
that was killed becomes its child, and is ended. It ends with the program.
"""

from __future__ import annotations

import _signal
import _socket
import gc
import os
import select

from .kernel import PR_SET_CHILD_SUBREAPER, prctl
from .protocol import FAILED, HEAD, HELLO
from .serving import Agent, catch_signals, quiet_link, take, waking_pipe
from .trees import below, children, end_all, signal_all

WAKE_MILLISECONDS = 100


class Nursery:
    """Forks agents, and knows which of its children they are.

    Args:
        control: To the host.
    """

    def __init__(self, control: _socket.socket) -> None:
        self.control = control
        self.agents: set[int] = set()
        self.wake = waking_pipe()
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)
        self.poll.register(self.wake, select.POLLIN)

    def serve(self) -> None:
        """Until the host hangs up."""
        self.control.send(HEAD.pack(HELLO, 0, 0))
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.wake:
                    os.read(self.wake, 4096)
                    self.reap()
                    continue
                data, links = take(self.control)
                if not data:
                    self.leave()
                    return
                for link in links:
                    self.fork(_socket.socket(fileno=link))

    def fork(self, link: _socket.socket) -> None:
        try:
            pid = os.fork()
        except OSError as error:
            link.send(HEAD.pack(FAILED, 0, 0) + str(error).encode())
        else:
            if pid == 0:
                self.control.close()
                os.close(self.wake)
                become_agent(link)
            self.agents.add(pid)
        link.close()

    def reap(self) -> None:
        broken = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self.agents:
                self.agents.remove(pid)
                broken = broken or status != 0
        if broken:
            end_all(self.strays)

    def strays(self) -> list[int]:
        """What agents have left that ended otherwise than they should."""
        tops = [pid for pid in children(os.getpid()) if pid not in self.agents]
        return [*tops, *(pid for top in tops for pid in below(top))]

    def leave(self) -> None:
        """Nobody has tasks any more: what their agents leave behind is ours to end."""
        self.poll.unregister(self.control)
        signal_all(self.agents, _signal.SIGKILL)
        while self.agents:
            self.reap()
            self.poll.poll(WAKE_MILLISECONDS)
        end_all(self.strays)


def become_agent(link: _socket.socket) -> None:
    """Never returns."""
    code = 1
    try:
        gc.enable()
        os.setsid()
        code = 0 if Agent(link, forked=True).serve() else 1
    finally:
        os._exit(code)


def main() -> None:
    control = quiet_link()
    catch_signals()
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    gc.disable()
    gc.freeze()
    Nursery(control).serve()
