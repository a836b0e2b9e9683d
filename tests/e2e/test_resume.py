"""A later command goes on with a session: what it selected, what it started, who is meant by "it"."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cli import rl_cli

SCRIPT = Path(__file__).parent / "scripts" / "killed.yaml"


def test_a_later_command_knows_the_draft_and_the_run_of_its_session(home: Path, tmp_path: Path) -> None:
    play, script = tmp_path / "play.yaml", tmp_path / "script.yaml"
    play.write_text("- repeat: {count: 600, every: 0.1, values: {loss: 0.1, reward/mean: [0.2, 0.8]}}\n")
    script.write_text(SCRIPT.read_text().replace("PLAY", str(play)))
    scripted = ["--model", f"scripted/{script}", "--yes"]
    assert "It is prepared." in rl_cli("ask", "sentence one", *scripted).out
    assert "It is started." in rl_cli("ask", "sentence two", *scripted, "--session", "latest").out
    [ours] = rl_cli("runs", "list", "--json").rows()
    assert rl_cli("runs", "start", "gsm8k-mini", "--backend", f"replay:{play}").code == 0
    told = rl_cli("ask", "stop it", "--session", "latest", "--model", "builtin/operator", "--yes", timeout=90)
    states = {run["id"]: run["state"] for run in rl_cli("runs", "list", "--json").rows()}
    assert rl_cli("runs", "stop", "latest", "--now").code == 0
    assert told.code == 0, told.out
    other = next(run for run in states if run != ours["id"])
    assert (states[ours["id"]], states[other]) == ("stopped", "running")
    assert len(list((home / "sessions").glob("*.jsonl"))) == 1
