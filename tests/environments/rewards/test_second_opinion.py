"""The processes of a second opinion do not outlive the one that asked for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rl_cli.core.extras import missing_modules
from rl_cli.core.processes import ProcessIdentity
from tests.components import leave_out

ASKING = """
import sys
from environments.rewards.second_opinion import SecondOpinion

opinion = SecondOpinion(workers=1, limit_s=3)
assert opinion.correct("18", "18") is True
print(*opinion.pids(), flush=True)
opinion.correct("18", sys.argv[1])
input()
"""
TOWER = "\\boxed{9^{9^{9^{9}}}}"
"""Minutes of one multiplication, which nothing in the process can interrupt."""


@pytest.mark.parametrize("answer", ["18", TOWER], ids=["idle", "computing"])
def test_a_worker_ends_when_its_parent_is_killed(answer: str) -> None:
    if missing_modules("math"):
        leave_out("the math extra (pip install 'rl-flywheel[math]')")
    command = [sys.executable, "-P", "-c", ASKING, answer]
    asking = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert asking.stdout
    assert asking.stdin
    worker = ProcessIdentity.of(int(asking.stdout.readline()))
    time.sleep(0.5)  # into the computation
    assert worker.alive()
    os.kill(asking.pid, signal.SIGKILL)
    asking.wait()
    asking.stdin.close()
    asking.stdout.close()
    until = time.monotonic() + 60
    while worker.alive():
        assert time.monotonic() < until, "it outlives its parent"
        time.sleep(0.1)
