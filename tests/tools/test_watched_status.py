"""rl_check_status on a run that somebody else started."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from rl_cli.runs.run_dir import RunDir
from tests.runs.kit import until
from tests.tools.calls import call, context
from tests.tracking.kit import use
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, log, plant_run
from tools.dispatcher import handle_function_call


def test_a_check_waits_for_an_alert_of_a_watched_run_then_for_its_end(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"run_id": "wandb:team/rl/abc123", "wait": True}
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        record = plant_run(server, curve(30))
        run = RunDir(home / "runs" / "wandb-team-rl-abc123")

        def goes_wrong() -> None:
            until(lambda: run.path.is_dir() and run.state()["state"] == "running", 60)
            log(server, record, [{"train/global_step": 30, "train/reward": 0.7, "train/loss": "NaN"}])

        given = context(toolsets=("rl",))
        trouble = threading.Thread(target=goes_wrong)
        trouble.start()
        found: dict[str, Any] = json.loads(
            asyncio.run(handle_function_call("rl_check_status", arguments, given))
        )
        trouble.join()
        assert (found["why"], found["alerts"][-1]["rule"]) == ("alert", "not_finite")
        assert "nothing was stopped" in found["alerts"][-1]["action"]
        assert not record.stopped
        refused = call("rl_stop_training", {"reason": "NaN", "run_id": run.id}, given)
        assert "wandb_stop_run" in json.dumps(refused["error"])
        record.state = "failed"
        ended = call("rl_check_status", arguments, given)
        assert (ended["why"], ended["run"]["state"]) == ("end", "failed")
