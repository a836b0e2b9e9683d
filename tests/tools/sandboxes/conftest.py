"""The four kinds of sandbox that are tested for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.components import leave_out
from tests.tools.sandboxes import engines
from tests.tools.sandboxes.places import DockerPlace, LocalPlace, Place, SshPlace
from tools.sandboxes.kinds import usable


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
