"""Runs wandb's command so that it does not outlive who started it.

`python -P -m rl_cli.tracking.bound RUN_DIR PARENT ARGUMENT...`; the folder tells others whose process it is.
It holds the key, as does its wandb-core, and would go on for as long as W&B does not answer.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading
import time

LOOK_EVERY_SECONDS = 0.5


def end_with(parent: int) -> None:
    """Ends this process, and what it has started, as soon as its parent is another one.

    Args:
        parent: The pid of who started it.
    """
    threading.Thread(target=_watch, args=[parent], daemon=True, name="parent").start()


def _watch(parent: int) -> None:
    import psutil

    while os.getppid() == parent:
        time.sleep(LOOK_EVERY_SECONDS)
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.Error:
            continue
    os._exit(1)


def main(parent: int, arguments: list[str]) -> None:
    end_with(parent)
    sys.argv = ["wandb", *arguments]
    runpy.run_module("wandb", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(int(sys.argv[2]), sys.argv[3:])
