"""The four kinds of sandbox that are tested for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components import leave_out
from tests.tools.sandboxes import engines
from tests.tools.sandboxes.places import DockerPlace, LocalPlace, Place, SshPlace
from tools.sandboxes.kinds import usable


@pytest.hookimpl(tryfirst=True)  # before pytest leaves the soak out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a table, local takes every row, and each other kind the first: in the soak all take the rest."""
    seen = set[tuple[Path, str, str]]()
    for item in items:
        if not isinstance(item, pytest.Function) or "place" not in item.fixturenames:
            continue
        kind = item.callspec.params["place"]
        test = (item.path, item.originalname, kind)
        if kind != "local" and test in seen:
            item.add_marker(pytest.mark.soak)
        seen.add(test)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Sshd]:
    with engines.sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="session")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[engines.Podman]:
    with engines.podman(tmp_path_factory.mktemp("podman")) as engine:
        yield engine


@pytest.fixture(params=["local", "bubblewrap", "docker", "ssh"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    kind: str = request.param
    if kind == "ssh":
        return SshPlace(request.getfixturevalue("sshd"))
    if kind == "docker":
        engine: engines.Podman = request.getfixturevalue("podman")
        for name, value in engine.env.items():
            monkeypatch.setenv(name, value)
        return DockerPlace(engine)
    if why := usable(kind):
        leave_out(f"{kind} ({why})")
    return LocalPlace(kind)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of the host for what is copied."""
    folder = tmp_path / "files"
    folder.mkdir()
    return folder
