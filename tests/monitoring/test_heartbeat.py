"""monitor.json is believed only as far as somebody can have written it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.files import write_json
from rl_cli.monitoring.heartbeat import FILE, monitor_state, take_place
from rl_cli.runs.checks.clock import SystemClock
from rl_cli.runs.times import now_text

ELSEWHERE = {"pid": 1, "started": 0.0, "host": "another"}
NEVER = "9999-01-01T00:00:00Z"


@pytest.mark.parametrize(
    "record",
    [
        {"heartbeat": NEVER},
        {"heartbeat": now_text(), "clock": {"wall": 2.0**50, "boot": "another", "seconds": 1.0}},
        {"heartbeat": now_text(), "clock": {**SystemClock().now().to_dict(), "seconds": 2.0**50}},
    ],
)
def test_a_heartbeat_that_lies_years_ahead_keeps_nobody_from_the_checks(
    home: Path, record: dict[str, Any]
) -> None:
    home.mkdir()
    write_json(home / FILE, {"process": ELSEWHERE, **record})
    assert monitor_state(home) is None
    assert take_place(home)[0]


def test_a_clock_that_is_a_little_ahead_is_believed(home: Path) -> None:
    now = SystemClock().now()
    clock = {"wall": now.wall + 3600, "boot": "another", "seconds": 1.0}
    home.mkdir()
    write_json(home / FILE, {"process": ELSEWHERE, "heartbeat": now_text(), "clock": clock})
    found = monitor_state(home)
    assert found
    assert found.state == "running"


def test_a_pipe_is_no_heartbeat(home: Path) -> None:
    home.mkdir()
    os.mkfifo(home / FILE)
    assert monitor_state(home) is None
