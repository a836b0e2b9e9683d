"""`rl-cli runs ... wandb:ENTITY/PROJECT/RUN` as a person runs it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.e2e.cli import command, rl_cli
from tests.runs.kit import until
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, log, plant_run

NAME = "wandb:team/rl/abc123"


def test_watch_leave_show_and_stop_a_run_of_somebody_else(home: Path, tmp_path: Path) -> None:
    with WandbServer() as server:
        record = plant_run(server, curve(12))
        environment = {**server.environment, "RL_CLI_HOME": str(home), "HOME": str(tmp_path)}
        path = tmp_path / "lines"
        with path.open("w") as out:
            words = command("runs", "watch", NAME, "--json")
            watch = subprocess.Popen(words, env={**os.environ, **environment}, stdout=out)
            until(lambda: '"metrics"' in path.read_text(), 90)
            watch.send_signal(signal.SIGINT)
            assert watch.wait(30) == 130
            server.requests.clear()
            log(server, record, curve(3, start=12))
            watch = subprocess.Popen(words, env={**os.environ, **environment}, stdout=out)
            until(lambda: '"step": 14' in path.read_text(), 90)
            pages = [one for _, one, _ in server.requests if one == "HistoryPage"]
            assert len(pages) == 1  # what was read before Ctrl-C is not read again
            stopped = rl_cli("runs", "stop", NAME, "--reason", "enough", **environment)
            assert stopped.code == 0, stopped.err
            assert "a request" in stopped.out
            assert record.stopped
            record.state = "killed"
            assert watch.wait(120) == 1  # it was stopped before its work was done
        assert "W&B says killed" in path.read_text()
        shown = rl_cli("runs", "show", NAME, "--json", **environment).rows()[0]
        assert (shown["step"], shown["state"], shown["backend"]) == (14, "stopped", "wandb")
    old = rl_cli("runs", "show", NAME, **environment)
    assert old.code == 0
    assert "may be old" in old.err
