"""Every fault of W&B against a run that trains meanwhile: as fast as ever, nothing lost, the truth shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.conftest import runs
from tests.tracking.kit import use
from tests.tracking.suffering import EVERY_SECONDS, TOLD_ILL, suffer
from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer

__all__ = ["runs"]
pytestmark = [pytest.mark.soak, pytest.mark.waits]
MOST_SLOWER = 1.2
"""A step may take so many times what it takes without a fault."""
EVERYWHERE = ["refused", *EVERY_FAULT]
PARTS = [
    (fault, part)
    for fault in EVERY_FAULT
    for part in ("graphql", "file_stream", "storage")
    if part == "graphql" or fault != "graphql-error"
]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer() as running:
        use(running, monkeypatch, tmp_path)
        yield running


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_an_outage_in_the_middle(runs: Path, server: WandbServer, fault: str) -> None:
    found = suffer(server, runs, fault)
    print(f"\n{fault}: {found}")
    assert found.complete
    assert found.pace < MOST_SLOWER * EVERY_SECONDS + 0.01
    assert fault == "slow" or set(found.told) & set(TOLD_ILL)


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_ill_from_the_start(runs: Path, server: WandbServer, fault: str) -> None:
    found = suffer(server, runs, fault, healthy=0.0)
    print(f"\n{fault}: {found}")
    assert found.complete
    assert found.pace < MOST_SLOWER * EVERY_SECONDS + 0.01
    assert fault == "slow" or set(found.told) & set(TOLD_ILL)


@pytest.mark.parametrize(("fault", "part"), PARTS)
def test_one_part_is_ill(runs: Path, server: WandbServer, fault: str, part: str) -> None:
    found = suffer(server, runs, fault, part, ill=60.0)
    print(f"\n{fault} of {part}: {found}")
    assert found.complete
    assert found.pace < MOST_SLOWER * EVERY_SECONDS + 0.01


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_online(runs: Path, server: WandbServer, fault: str) -> None:
    found = suffer(server, runs, fault, mode="online")
    print(f"\n{fault}: {found}")
    assert found.complete
    assert found.pace < MOST_SLOWER * EVERY_SECONDS + 0.01
