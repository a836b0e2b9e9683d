from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.cli.run_details import show_run
from rl_cli.core.files import write_json
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import create_run
from rl_cli.runs.supervision.tracking_mode import environment_for, wanted_mode
from rl_cli.runs.tracking_file import disagreements, read_tracking, tracking_facts
from tests.runs.kit import identity, replay_config, start, steps, until, until_over, until_state, until_step

MODES = ("auto", "live", "online", "offline", "off")


@pytest.fixture(autouse=True)
def no_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def modes() -> list[str]:
    return [wanted_mode(mode) for mode in MODES]


def test_modes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert modes() == ["offline", "offline", "offline", "offline", "off"]
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine api.wandb.ai login user password {'a' * 40}\n")
    netrc.chmod(0o600)
    assert modes() == ["live", "live", "online", "offline", "off"]
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    assert modes()[:2] == ["offline", "offline"]
    monkeypatch.setenv("WANDB_API_KEY", "k")
    assert modes() == ["live", "live", "online", "offline", "off"]
    monkeypatch.setenv("WANDB_MODE", "offline")
    assert modes() == ["offline", "live", "online", "offline", "off"]
    monkeypatch.setenv("WANDB_MODE", "disabled")
    assert set(modes()) == {"off"}


def test_only_who_uploads_may_know_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WANDB_API_KEY", "OPENAI_API_KEY", "WANDB_DEBUG", "WANDB_RUN_ID"):
        monkeypatch.setenv(name, "x" * 20)
    with_key, without = environment_for(key=True), environment_for(key=False)
    assert {name for name in without if name not in with_key} == {"WANDB_API_KEY"}
    assert {"OPENAI_API_KEY", "WANDB_DEBUG", "WANDB_RUN_ID"} <= set(with_key)


def test_ops_07_what_w_and_b_says_stands_beside_what_is_true_here(runs: Path) -> None:
    run = start(runs, [steps(400, every=0.05)])
    until_state(run, "running")
    until_step(run, 4)
    until(lambda: run.state()["step"] >= 4)
    differs = {"step": 2, "metrics": {"loss": [0.5, 0.25]}}
    said = {"mode": "live", "state": "ok", "remote_state": "crashed", "remote_step": 3, "differs": differs}
    write_json(run.path / "tracking.json", said)
    state, figures = disagreements(run)
    assert state.startswith("W&B says crashed; here it runs (step ")
    assert figures == "W&B says loss 0.25 at step 2; here it is 0.5"
    said = {"mode": "live", "state": "behind", "remote_state": "crashed", "remote_step": 3}
    write_json(run.path / "tracking.json", said)
    assert disagreements(run)[1].startswith("W&B's newest step is 3; here it is ")
    said["remote_step"] = None
    write_json(run.path / "tracking.json", said)
    assert run.stop_requested() is None
    run.request_stop("test", "enough", now=True)
    until_over(run)
    assert disagreements(run) == []
    write_json(run.path / "tracking.json", {**said, "remote_state": "running"})
    assert disagreements(run)[0].startswith("W&B says running; here it is stopped")


def test_what_is_lacking_is_said_once_with_what_to_do(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = start(runs, [steps(1)])
    until_over(run)
    record = {"mode": "live", "state": "incomplete", "rows": 1, "uploaded": 0, "error": "it is down"}
    write_json(run.path / "tracking.json", record)
    write_json(
        run.path / "state.json", {**run.state(), "alerts": [{"rule": "wandb", "message": "it is down"}]}
    )
    show_run(run, as_json=False, plot=False)
    shown = capsys.readouterr().out
    assert shown.count("it is down") == 1
    assert (
        f"live, incomplete: 0 of 1 rows (it is down); to upload the rest: rl-cli runs sync {run.id}" in shown
    )
    assert (tracking_facts(run) or {})["hint"].endswith(run.id)


def test_an_uploader_that_is_gone_does_not_go_on_saying_ok(runs: Path) -> None:
    run = start(runs, [steps(1)])
    until_over(run)
    write_json(run.path / "tracking.json", {"mode": "live", "state": "ok"})
    state = run.state()
    assert (read_tracking(run) or {})["state"] == "ok"
    gone = {**state["processes"], "uploader": {**identity(run, "trainer").to_dict()}}
    told = read_tracking(run, {**state, "processes": gone}) or {}
    assert told["state"] == "incomplete"
    assert told["error"] == "the process that uploads is gone"


@pytest.mark.parametrize("content", ["", "[]", '{"state": 3}', "{"])
def test_a_damaged_tracking_file_is_as_none(home: Path, content: str) -> None:
    run: RunDir = create_run(replay_config(), home)
    (run.path / "tracking.json").write_text(content)
    assert read_tracking(run) is None
    assert disagreements(run) == []
