from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from tests.e2e.cli import rl_cli


def test_list_and_show_agree() -> None:
    rows = rl_cli("tools", "list", "--json").rows()
    assert {"name": "calculator", "toolset": "math", "risk": "read"}.items() <= rows[0].items()
    text = rl_cli("tools", "list").out
    assert all(row["name"] in text for row in rows)
    shown = json.loads(rl_cli("tools", "show", "calculator", "--json").out)
    assert shown["parameters"]["required"] == ["expression"]
    assert "calculator(expression: string)" in rl_cli("tools", "show", "calculator").out


@pytest.mark.parametrize(
    ("arguments", "code", "type"),
    [
        ('{"expression": "1/0"}', 1, "division_by_zero"),
        ('{"expr": "1"}', 2, "invalid_arguments"),
        ("{oops", 2, "invalid_arguments"),
        ("", 2, "invalid_arguments"),
    ],
)
def test_a_failed_call_prints_its_result_and_one_line(arguments: str, code: int, type: str) -> None:
    outcome = rl_cli("tools", "call", "calculator", arguments)
    assert outcome.code == code
    assert json.loads(outcome.out)["error"]["type"] == type
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1


def test_a_good_call_prints_its_result_only() -> None:
    outcome = rl_cli("tools", "call", "calculator", '{"expression": "2*21"}')
    assert (outcome.code, outcome.out, outcome.err) == (0, '{"ok": true, "result": 42}\n', "")


def test_an_unknown_tool_is_bad_usage() -> None:
    outcome = rl_cli("tools", "call", "calculater")
    assert outcome.code == 2
    assert "did you mean calculator" in outcome.err


def test_spending_without_a_terminal_is_refused() -> None:
    outcome = rl_cli("tools", "call", "rl_start_training")
    assert outcome.code == 3
    assert json.loads(outcome.out)["error"]["type"] == "refused"
    assert "--yes" in outcome.err


@pytest.mark.parametrize(
    ("answer", "code"), [(b"n\n", 3), (b"\n", 3), (b"\x04", 3), (None, 130), (b"y\n", 0)]
)
def test_a_terminal_is_asked_and_shown_the_arguments(answer: bytes | None, code: int) -> None:
    run = (
        "from rl_cli.cli import main; from tools.toolsets import TOOLSETS, Toolset; "
        "TOOLSETS['test'] = Toolset(modules=('tests.tools.sample_tools',)); main.main()"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", run, "tools", "call", "execute_it", '{"what": "rm\\u001b[2K\\u202e"}'],
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(theirs)
    screen = b""
    deadline = time.monotonic() + 60
    while b"Allow it?" not in screen:
        assert time.monotonic() < deadline
        screen += os.read(ours, 4096)
    assert b"execute_it may run code" in screen
    assert b"rm\\u001b[2K\\u202e" in screen
    if answer is None:
        process.send_signal(signal.SIGINT)
    else:
        os.write(ours, answer)
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == code
    assert bool(out) == (answer is not None)
    assert not out or json.loads(out)["ok"] == (code == 0)
