"""A process with the command's modules loaded, forked for each call: `python -P -m tests.e2e.fork_server`.

A call is a process of its own: its streams, environment, folder, signals and exit code are real. How the
command starts, and its command line, are not: `installed` in cli.py is for that.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import signal
import socket
import sys
import termios
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from rl_cli.cli.main import main
from tools.toolsets import implemented, load_toolsets

FOREIGN = ("openai", "rich.console", "rich.table", "plotext", "prompt_toolkit", "psutil", "sqlite3")
"""What commands import when they are called."""
OURS = ("rl_cli/cli", "rl_cli/agent", "rl_cli/monitoring", "tools/operations", "rl_cli/runs")
ROOT = Path(__file__).parent.parent.parent


def serve(path: str) -> dict[str, Any] | None:
    """Returns in each forked process what it is to run; in the first one None, at the end."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        listener.settimeout(2)
        print("ready", flush=True)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        parent = os.getppid()
        while os.getppid() == parent:
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            if os.fork():
                connection.close()
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            return _attend(connection)
    return None


def _attend(connection: socket.socket) -> dict[str, Any]:
    head, streams, _, _ = socket.recv_fds(connection, 8, 3)
    size, request = int.from_bytes(head, "big"), b""
    while len(request) < size:
        request += connection.recv(size - len(request))
    if pid := os.fork():
        for stream in streams:
            os.close(stream)
        connection.sendall(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    call = dict(json.loads(request))
    if call["terminal"]:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    return call


def run(call: dict[str, Any]) -> None:
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["environment"])
    time.tzset()
    sys.argv = ["rl-cli", *call["words"]]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - for the life of the process
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    main()


def load() -> None:
    load_toolsets(implemented())  # in this order they are listed
    for folder in OURS:
        for file in sorted((ROOT / folder).glob("*.py")):
            import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
    for name in FOREIGN:
        import_module(name)
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    load()
    asked = None
    with suppress(KeyboardInterrupt):
        asked = serve(sys.argv[1])
    if asked:
        run(asked)
