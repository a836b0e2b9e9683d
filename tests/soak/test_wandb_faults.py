"""Every fault of W&B against a run that trains meanwhile: as fast as ever, nothing lost, the truth shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.conftest import runs
from tests.runs.kit import end_all
from tests.tracking.kit import use
from tests.tracking.suffering import TOLD_ILL, Pace, suffer
from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer

__all__ = ["runs"]
pytestmark = [pytest.mark.soak, pytest.mark.waits]
EVERYWHERE = ["refused", *EVERY_FAULT]
PARTS = [
    (fault, part)
    for fault in EVERY_FAULT
    for part in ("graphql", "file_stream", "storage")
    if part == "graphql" or fault != "graphql-error"
]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Pace]:
    """The pace of runs beside a W&B that is well, by mode."""
    found = {}
    for mode in ("live", "online"):
        folder = tmp_path_factory.mktemp(mode)
        with WandbServer() as well, pytest.MonkeyPatch.context() as patch:
            use(well, patch, folder)
            patch.setenv("RL_CLI_HOME", str(folder / "home"))
            found[mode] = suffer(well, folder / "home", None, mode=mode).pace
            end_all(folder / "home")
    print(f"\nhealthy: {found}")
    return found


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WandbServer]:
    with WandbServer() as running:
        use(running, monkeypatch, tmp_path)
        yield running


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_an_outage_in_the_middle(
    runs: Path, server: WandbServer, healthy: dict[str, Pace], fault: str
) -> None:
    found = suffer(server, runs, fault)
    print(f"\n{fault}: {found}")
    assert found.complete
    assert found.pace.slower_than(healthy["live"]) == []
    assert fault == "slow" or set(found.told) & set(TOLD_ILL)


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_ill_from_the_start(runs: Path, server: WandbServer, healthy: dict[str, Pace], fault: str) -> None:
    found = suffer(server, runs, fault, healthy=0.0)
    print(f"\n{fault}: {found}")
    assert found.complete
    assert found.pace.slower_than(healthy["live"]) == []
    assert fault == "slow" or set(found.told) & set(TOLD_ILL)


@pytest.mark.parametrize(("fault", "part"), PARTS)
def test_one_part_is_ill(
    runs: Path, server: WandbServer, healthy: dict[str, Pace], fault: str, part: str
) -> None:
    found = suffer(server, runs, fault, part, ill=60.0)
    print(f"\n{fault} of {part}: {found}")
    assert found.complete
    assert found.pace.slower_than(healthy["live"]) == []
    if part != "storage" and fault != "slow":  # rows arrive then; files are looked at when the run is over
        assert set(found.told) & set(TOLD_ILL)


@pytest.mark.parametrize("fault", EVERYWHERE)
def test_online(runs: Path, server: WandbServer, healthy: dict[str, Pace], fault: str) -> None:
    found = suffer(server, runs, fault, mode="online")
    print(f"\n{fault}: {found}")
    assert found.complete
    assert found.pace.slower_than(healthy["online"]) == []
    assert fault == "slow" or set(found.told) & set(TOLD_ILL)
