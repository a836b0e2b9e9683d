"""Runs that are tracked by the real SDK in a W&B of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.tracking_file import recorded
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.rows import Key, key_of, key_of_logged
from tests.runs.kit import identity, until
from tests.wandb_server.server import WandbServer


def use(server: WandbServer, monkeypatch: Any, folder: Path) -> None:
    """Processes that are started from now on take `server` for W&B."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", str(folder))


class Kept(Asker):
    """Its child answers the questions of several tests: starting one takes a second."""

    def close(self) -> None:
        """Keeps the child; `end` ends it."""

    def end(self) -> None:
        super().close()


def wanted(run: RunDir) -> set[Key]:
    return {key for row in run.metrics() if (key := key_of(row))}


def there(server: WandbServer) -> list[Key]:
    """What the server has, in its order, doubles included."""
    rows = [row for run in server.runs.values() for row in run.rows]
    return [key for row in rows if (key := key_of_logged(row))]


def tracking(run: RunDir) -> dict[str, Any]:
    return recorded(run) or {}


def until_left_alone(run: RunDir, seconds: float = 150) -> None:
    """Until the supervisor, and so all that it started, has ended."""
    until(lambda: not identity(run, "supervisor").alive(), seconds)
