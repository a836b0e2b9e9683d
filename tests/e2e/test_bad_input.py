"""Bad input and a bad machine get one clear line and the right exit code."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.components import leave_out, mounts
from tests.e2e.cli import Outcome, command, rl_cli

WRITERS = [
    ["train a GSM8K model", "--yes"],
    ["ask", "train gsm8k-mini", "--yes"],
    ["runs", "start", "gsm8k-mini", "--profile", "cpu-demo"],
]
"""Commands that need a home they can write to."""


def last_line(outcome: Outcome) -> str:
    """The error: the last line on stderr, and the only one of its kind."""
    assert "Traceback" not in outcome.err
    assert outcome.err.count("error: ") == 1, outcome.err
    return outcome.err.splitlines()[-1]


def mounted(folder: Path, prepare: str, *words: str) -> Outcome:
    """Runs the command with its home on a file system of its own; `prepare` readies it, $0 is its folder."""
    mounts()
    folder.mkdir(exist_ok=True)
    trial = ["unshare", "-m", "mount", "-t", "tmpfs", "none", str(folder)]
    if subprocess.run(trial, capture_output=True).returncode:
        leave_out("the right to mount a tmpfs")
    script = f"mount -t tmpfs -o size=128k none $0 && {prepare} && exec {shlex.join(command(*words))}"
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, str(folder)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"RL_CLI_HOME": str(folder)},
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", WRITERS)
def test_a_home_on_a_read_only_mount(tmp_path: Path, words: list[str]) -> None:
    outcome = mounted(tmp_path / "mount", "mount -o remount,ro $0", *words)
    assert outcome.code == 2, outcome
    assert "read-only" in last_line(outcome)
    assert str(tmp_path / "mount") in last_line(outcome)
    assert "RL_CLI_HOME" in last_line(outcome)


@pytest.mark.parametrize("words", WRITERS)
def test_a_home_on_a_full_disk(tmp_path: Path, words: list[str]) -> None:
    fill = "{ dd if=/dev/zero of=$0/filler bs=1k status=none 2>/dev/null || true; }"
    outcome = mounted(tmp_path / "mount", fill, *words)
    assert outcome.code == 1, outcome
    assert "disk is full" in last_line(outcome)
    assert str(tmp_path / "mount") in last_line(outcome)
    assert "free space" in last_line(outcome)


def test_a_home_that_cannot_be_written_can_still_be_read(tmp_path: Path) -> None:
    outcome = mounted(tmp_path / "mount", "mount -o remount,ro $0", "runs", "list")
    assert (outcome.code, outcome.out) == (0, "")


@pytest.mark.parametrize("words", WRITERS)
def test_a_home_below_a_file(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "file").touch()
    outcome = rl_cli(*words, RL_CLI_HOME=str(tmp_path / "file" / "home"))
    assert outcome.code == 2, outcome
    assert "RL_CLI_HOME" in last_line(outcome)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["rnus", "list"], "did you mean runs"),
        (["doctr"], "did you mean doctor"),
        (["train"], "a request takes several words"),
        (["envs", "lst"], "Did you mean 'list'"),
        (["tools", "call", "rl_list_environment"], "did you mean rl_list_environments"),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(words: list[str], hint: str) -> None:
    outcome = rl_cli(*words)
    assert outcome.code == 2
    assert hint in last_line(outcome)
    assert outcome.err.count("\n") == 1
