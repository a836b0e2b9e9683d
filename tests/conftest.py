"""Every test gets a home of its own; the end of the run names what was missing."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from rl_cli.core.extras import install_command, missing_modules
from tests.components import LEFT_OUT, leave_out

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# In the background SIGINT is ignored, under nohup SIGHUP; what the suite starts would ignore them too.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
# No test asserts an absolute time: five at a time take as long as they take.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "WANDB_API_KEY")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh RL_CLI_HOME; no key and no user config of the person who runs the tests is seen."""
    folder = tmp_path / "home"
    monkeypatch.setenv("RL_CLI_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    return folder


def pytest_make_parametrize_id(val: object) -> str | None:
    """Long texts are cut: each worker tells the names of all tests."""
    return f"{val[:60]!a}..." if isinstance(val, str) and len(val) > 200 else None


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What trains comes first, in two groups: no more workers than that load torch, and the others wait less.

    Tests that share a fixture of their module stay together too, so that it is made once; and so do those
    that need the container engine, and those that need the sshd.
    """
    items.sort(
        key=lambda item: (
            item.get_closest_marker("train") is None,
            _server(item) is None,
            "e2e" not in item.path.parts,
        )
    )
    trains = {item.path: None for item in items if item.get_closest_marker("train")}
    group = {path: f"train-{number % 2}" for number, path in enumerate(trains)}
    for item in items:
        known = item._fixtureinfo.name2fixturedefs.values() if isinstance(item, pytest.Function) else ()
        if item.path in group:
            item.add_marker(pytest.mark.xdist_group(group[item.path]))
        elif server := _server(item):
            item.add_marker(pytest.mark.xdist_group(server))
        elif any(fixture.scope == "module" for fixtures in known for fixture in fixtures):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def _server(item: pytest.Item) -> str | None:
    """What a test of sandboxes needs that takes long to start, and that one worker starts once."""
    if not isinstance(item, pytest.Function):
        return None
    place = item.callspec.params.get("place") if hasattr(item, "callspec") else None
    if place == "docker" or "podman" in item.fixturenames:
        return "podman"
    return "sshd" if place == "ssh" or "sshd" in item.fixturenames else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("train") and missing_modules("train"):
        leave_out(f"the train extra ({install_command('train')})")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reasons = [report.longrepr[2] for report in terminalreporter.getreports("skipped")]
    missing = Counter(why.partition(LEFT_OUT)[2] for why in reasons if LEFT_OUT in why)
    for component, count in sorted(missing.items()):
        terminalreporter.write_line(f"missing on this machine: {component} ({count} tests left out)")
