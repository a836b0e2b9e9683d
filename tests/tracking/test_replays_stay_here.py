"""Invented figures do not get into anybody's W&B project unless they are asked for by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.core.files import write_json
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import StateWriter
from rl_cli.runs.store import create_run
from rl_cli.runs.supervision.tracking_mode import wanted_mode
from rl_cli.runs.tracking_file import tracking_notes
from rl_cli.tracking.sync import need_sync
from tests.e2e.cli import rl_cli
from tests.runs.kit import replay_config


def recorded(home: Path, tracking: str) -> RunDir:
    """A replay that is over and was recorded, and not uploaded."""
    run = create_run(replay_config(tracking={"wandb": tracking}), home)
    StateWriter(run.path).move("finished", "all is done", processes={})
    write_json(run.path / "tracking.json", {"mode": "offline", "state": "recorded", "rows": 3, "uploaded": 0})
    return run


def test_a_replay_is_uploaded_only_where_that_was_asked_for(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.delenv("WANDB_MODE", raising=False)
    modes = [wanted_mode(mode, "replay") for mode in ("auto", "live", "online", "off")]
    assert modes == ["offline", "live", "online", "off"]
    assert wanted_mode("auto", "trl") == "live"
    played, asked = recorded(home, "auto"), recorded(home, "live")
    wanted, skipped = need_sync(str(home))
    assert ([run.id for run in wanted], [run.id for run in skipped]) == ([asked.id], [played.id])
    assert tracking_notes(played) == []
    assert tracking_notes(asked) == [
        f"W&B is offline. To upload it, with a key (WANDB_API_KEY): rl-cli runs sync {asked.id}"
    ]


def test_a_bare_sync_names_the_replays_that_it_skips(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    played = recorded(home, "auto")
    done = rl_cli("runs", "sync")
    assert done.code == 0
    assert f"replays are uploaded only when they are named: {played.id}" in done.err
