"""A run that its budget ends unfinished is a failure to scripts; one that somebody stops is not."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.cli import rl_cli

LONG = "- repeat: {count: 40, every: 0.3, values: {loss: 0.1, reward/mean: [0.2, 0.8]}}\n"
SCRIPT = """
- when: {contains: play}
  tool_calls: [{name: rl_select_environment, arguments: {name: gsm8k-mini}}]
- when: {last_tool: rl_select_environment}
  tool_calls:
    - name: rl_edit_config
      arguments: {changes: {backend.name: replay, backend.file: PLAY, budget.max_hours: 0.0006}}
- when: {last_tool: rl_edit_config, ok: true}
  tool_calls: [{name: rl_start_training}]
- when: {last_tool: rl_start_training, ok: true}
  tool_calls: [{name: rl_check_status, arguments: {wait: true}}]
"""


def test_a_request_whose_run_is_cut_short_by_its_budget_exits_1(home: Path, tmp_path: Path) -> None:
    play, script = tmp_path / "long.yaml", tmp_path / "script.yaml"
    play.write_text(LONG)
    script.write_text(SCRIPT.replace("PLAY", str(play)))
    asked = rl_cli("ask", "play", "--model", f"scripted/{script}", "--yes")
    [run] = rl_cli("runs", "list", "--json").rows()
    assert run["state"] == "stopped", asked.out
    assert run["step"] < run["total_steps"]
    assert f"stopped at step {run['step']} of" in asked.out
    assert asked.code == 1
    assert rl_cli("runs", "watch", run["id"]).code == 1


def test_a_watch_ends_with_1_where_a_person_stops_the_run_too(home: Path, tmp_path: Path) -> None:
    play = tmp_path / "long.yaml"
    play.write_text(LONG)
    assert rl_cli("runs", "start", "gsm8k-mini", "--backend", f"replay:{play}").code == 0
    assert rl_cli("runs", "stop", "latest").code == 0
    assert rl_cli("runs", "watch", "latest").code == 1
