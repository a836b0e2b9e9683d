"""What some tests need beyond Python packages: named when missing, fatal where everything must be there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

LEFT_OUT = "missing: "
"""Begins the reason of a test that was left out; the component follows, and the end of the run names it."""


def find_browser() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def leave_out(component: str) -> None:
    """Leaves the calling test out because `component` is missing; fails it under RL_CLI_REQUIRE_ALL=1."""
    if os.environ.get("RL_CLI_REQUIRE_ALL") == "1":
        pytest.fail(f"{LEFT_OUT}{component} (RL_CLI_REQUIRE_ALL=1 allows no gaps)")
    pytest.skip(f"{LEFT_OUT}{component}")


def browser() -> str:
    """The path of a headless-capable browser."""
    path = find_browser()
    if not path:
        leave_out("chromium")
    assert path
    return path


def mounts() -> None:
    """Needs the right to mount: root, with mount namespaces."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        leave_out("root with unshare and mount")


def cases() -> Path:
    """The folder of cases: $RL_CLI_CASES, else our own smaller copies."""
    return Path(os.environ.get("RL_CLI_CASES") or Path(__file__).parent / "cases")


def gsm8k() -> Path:
    """The folder with the real GSM8K's train.jsonl and test.jsonl: $RL_CLI_GSM8K, else beside the cases."""
    folder = Path(os.environ.get("RL_CLI_GSM8K") or cases().parent / "data" / "gsm8k")
    if not (folder / "train.jsonl").is_file():
        leave_out("GSM8K's rows (RL_CLI_GSM8K names their folder)")
    return folder
