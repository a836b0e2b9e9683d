"""`monitor --once` ends in bounded time whatever the files of a run do, and names the run it gave up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.monitoring.test_monitor_command import LONG, SOON
from tests.runs.kit import start, until

HANGS = """
import sys, threading
from rl_cli.cli.main import main
from rl_cli.monitoring import once
once.RUN_SECONDS = 4.0
run, file = sys.argv[1:3]
def hang(event, words):
    if event in ("open", "os.listdir", "os.scandir") and run in str(words[0]) and file in str(words[0]):
        threading.Event().wait()
sys.addaudithook(hang)
sys.argv = ["rl-cli", "monitor", *sys.argv[3:]]
main()
"""


@pytest.mark.parametrize("file", ["state.json", "run.yaml", "metrics.jsonl", "events.jsonl", "checks.json"])
def test_a_run_whose_files_hang_is_given_up_by_name_and_the_others_are_judged(runs: Path, file: str) -> None:
    hung, well = (start(runs, LONG, SOON) for _ in range(2))
    for run in (hung, well):
        until(lambda run=run: run.last_metrics().get("step", 0) > 20)
    begun = time.monotonic()
    words = [sys.executable, "-P", "-c", HANGS, hung.id + os.sep, file, "--once"]
    told = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert time.monotonic() - begun < 100
    assert told.returncode == 1, told.stderr
    [given_up] = [line for line in told.stdout.splitlines() if "trouble" in line]
    assert f"{hung.id}  trouble: its files have not answered for 4 s" in given_up
    assert f"{well.id}  decision (rules): continue" in told.stdout


def test_a_run_that_hangs_keeps_a_monitor_from_no_other_run(runs: Path) -> None:
    hung = start(runs, LONG, SOON)
    words = [sys.executable, "-P", "-c", HANGS, hung.id + os.sep, "state.json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as monitor:
        assert monitor.stdout
        try:
            well = start(runs, LONG, SOON)
            until(lambda: [event for event in well.events() if event["kind"] == "decision"])
            decided = f"{well.id}  decision (rules): continue"
            told = next(line for line in monitor.stdout if decided in line or "trouble" in line)
            told += next(line for line in monitor.stdout if decided in line or "trouble" in line)
        finally:
            monitor.terminate()
    assert f"trouble: the state of {hung.id} has not answered for 5 s" in told
    assert decided in told
