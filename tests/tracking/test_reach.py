"""What is known of W&B without asking it: no key, no possible key, no server there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.core.files import write_json
from rl_cli.runs.store import create_run
from rl_cli.tracking.ask import Asker
from rl_cli.tracking.errors import WandbError
from tests.e2e.cli import rl_cli
from tests.runs.kit import replay_config

NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("key", "kind", "told"),
    [
        (None, "no_key", "no W&B key"),
        ("short", "wrong_key", "40 characters or more, this one has 5"),
        ("a b" * 20, "wrong_key", "letters, digits and underscores"),
        ("a" * 40, "down", f"{NOBODY} cannot be reached: Connection refused"),
        ("head.pay.sign", "down", "cannot be reached"),
        ("local-" + "a" * 40, "down", "cannot be reached"),
    ],
)
def test_no_process_is_started_to_find_out_what_is_known(
    key: str | None, kind: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("WANDB_BASE_URL", NOBODY)
    if key is not None:
        monkeypatch.setenv("WANDB_API_KEY", key)
    started: list[object] = []
    monkeypatch.setattr("subprocess.Popen", started.append)
    with Asker() as asker, pytest.raises(WandbError, match=told) as caught:
        asker.ask("viewer", {}, 20)
    assert (caught.value.kind, started) == (kind, [])


def test_sync_stops_at_a_server_that_is_down_and_says_what_was_not_tried(home: Path) -> None:
    runs = [create_run(replay_config(), home) for _ in range(3)]
    for run in runs:
        write_json(run.path / "state.json", {**run.state(), "state": "finished"})
        run.append_metrics("grpo", 1, loss=0.5)
    named = [run.id for run in runs]
    done = rl_cli("runs", "sync", *named, WANDB_BASE_URL=NOBODY, WANDB_API_KEY="a" * 40)
    assert done.code == 1
    assert "cannot be reached: Connection refused; 2 more runs not tried" in done.err
    assert done.out.count("cannot be reached") == 1
    assert named[1] not in done.out + done.err
