"""Fixtures: a server, and a child that asks it, for all tests of a module; starting one takes a second."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tracking.kit import Kept, use
from tests.wandb_server.server import WandbServer


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    """Asks W&B; for a test that lets it take the place of `Asker`."""
    asker = Kept()
    yield asker
    asker.end()


@pytest.fixture(scope="module")
def running() -> Iterator[WandbServer]:
    with WandbServer() as server:
        yield server


@pytest.fixture
def server(running: WandbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    """What processes of the test take for W&B: well, and without a run."""
    use(running, monkeypatch, tmp_path)
    yield running
    running.heal()
    running.refused.clear()
    running.runs.clear()
    running.requests.clear()
