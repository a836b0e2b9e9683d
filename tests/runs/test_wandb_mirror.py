from __future__ import annotations

import socketserver
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from rl_cli.core.processes import python_module
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.wandb_mirror import as_logged, wanted_mode
from tests.e2e.test_runs_replay import processes_of
from tests.runs.kit import STEP, identity, replay_config, start, steps, until, until_over

LOGIN = {"WANDB_API_KEY": "0" * 40}


class Refusing(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_error(401)

    def log_message(self, *_: Any) -> None:
        pass


class Hanging(Refusing):
    def do_POST(self) -> None:
        threading.Event().wait(60)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A W&B that refuses or hangs."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), request.param) as listening:
        listening.daemon_threads = True
        listening.block_on_close = False
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()


def wandb_events(run: RunDir) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["kind"] == "wandb"]


def test_without_a_key_every_row_is_kept_offline(runs: Path) -> None:
    play = [steps(3, every=0.0), {"step": 1, "phase": "sft", "loss": 2.0}, {"nan": "loss"}, {"stall": True}]
    run = start(runs, play, tracking={"wandb": "auto"})
    until_over(run)
    until(lambda: not identity(run, "supervisor").alive())
    (event,) = wandb_events(run)
    assert (event["mode"], event["url"]) == ("offline", None)
    kept = next(Path(event["dir"]).glob("*.wandb")).read_bytes()  # records of names and JSON, in the clear
    assert kept.count(b"groups/with_signal") >= 3
    assert b"sft/loss" in kept
    assert not any(alert["rule"] == "wandb" for alert in run.summary()["alerts"])


def test_off_starts_nothing(runs: Path) -> None:
    run = start(runs, [steps(2)], tracking={"wandb": "off"})
    until_over(run)
    assert not run.log_path("wandb").exists()


@pytest.mark.parametrize("server", [Refusing], indirect=True)
def test_a_refused_key_means_offline_and_an_alert(
    runs: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**LOGIN, "WANDB_BASE_URL": server}.items():
        monkeypatch.setenv(name, value)
    run = start(runs, [steps(20, every=0.1)], tracking={"wandb": "online"})
    state = until_over(run)
    assert state["state"] == "finished"
    until(lambda: not identity(run, "supervisor").alive())
    assert [event["mode"] for event in wandb_events(run)] == ["offline"]
    assert "wandb" in [alert["rule"] for alert in run.summary()["alerts"]]
    assert LOGIN["WANDB_API_KEY"] not in "".join(
        path.read_text(errors="replace") for path in run.path.rglob("*") if path.is_file()
    )


@pytest.mark.soak
@pytest.mark.parametrize("server", [Hanging], indirect=True)
def test_a_w_and_b_that_hangs_delays_no_end_and_leaves_nothing(
    runs: Path, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**LOGIN, "WANDB_BASE_URL": server}.items():
        monkeypatch.setenv(name, value)
    run = start(runs, [steps(5)], tracking={"wandb": "online"})
    mark = identity(run, "supervisor").mark
    state = until_over(run, seconds=10)
    assert state["state"] == "finished"
    until(lambda: processes_of(mark) == [], seconds=30)


def test_a_missing_wandb_is_told_and_harms_nothing(home: Path, tmp_path: Path) -> None:
    run = create_run(replay_config("demo", tracking={"wandb": "auto"}), home)
    run.append_metrics("grpo", 1, **STEP)
    mirror = "from rl_cli.runs.wandb_mirror import main; main(sys.argv[1])"
    code = f"import sys; sys.modules['wandb'] = None; {mirror}"
    argv = [*python_module("x")[:2], "-c", code, str(run.path)]
    subprocess.run(argv, check=True, timeout=60, cwd=tmp_path)
    assert "W&B gets nothing of this run" in run.events()[-1]["message"]


def test_modes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [wanted_mode(mode) for mode in ("auto", "online", "offline")] == ["offline"] * 3
    monkeypatch.setenv("WANDB_API_KEY", "k")
    assert [wanted_mode(mode) for mode in ("auto", "online", "offline")] == ["online", "online", "offline"]
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert [wanted_mode(mode) for mode in ("auto", "online")] == ["offline", "online"]


def test_rows_carry_their_axis_and_numbers_only() -> None:
    row = {"time": "t", "phase": "grpo", "step": 3, "loss": "NaN", "note": "text", "ok": True}
    logged = as_logged(row)
    assert set(logged) == {"global_step", "loss"}
    assert logged["loss"] != logged["loss"]
    assert as_logged({"phase": "sft", "step": 2, "loss": 1.0}) == {"sft/step": 2, "sft/loss": 1.0}
