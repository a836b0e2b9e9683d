"""A scripted policy plays a language model and goes through the whole procedure with real training."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.cli import rl_cli

SCRIPT = Path(__file__).parent / "scripts" / "conversation.yaml"


@pytest.mark.soak
@pytest.mark.train
def test_scripted_model_lists_edits_tests_starts_checks_and_stops_early(home: Path):
    told = rl_cli("ask", "train something", "--model", f"scripted/{SCRIPT}", "--yes", "--json")
    assert told.code == 0, told.err + told.out[-2000:]
    events = told.rows()
    results = [event for event in events if event["kind"] == "result"]
    assert list(dict.fromkeys(event["name"] for event in results)) == [
        "rl_list_environments",
        "rl_describe_environment",
        "rl_select_environment",
        "rl_edit_config",
        "rl_get_current_config",
        "rl_test_inference",
        "rl_start_training",
        "rl_check_status",
        "rl_stop_training",
        "rl_list_runs",
        "rl_get_results",
    ]
    assert [event["ok"] for event in results if event["name"] == "rl_edit_config"] == [False, True]
    assert sum(not event["ok"] for event in results) == 1

    by_name = {event["name"]: event["result"] for event in results}
    tested = json.loads(Path(by_name["rl_test_inference"]["file"]).read_text("utf-8"))
    assert tested["results"][0]["rollouts"] == 8
    outcome = by_name["rl_get_results"]
    assert outcome["run"]["state"] == "stopped"
    assert 0 < outcome["run"]["step"] < 500
    assert outcome["eval"]["initial"] is not None
    assert outcome["eval"]["final"] is not None
    assert Path(outcome["report"]).is_file()
    assert Path(outcome["checkpoint"]).is_dir()
    run = Path(outcome["run"]["dir"])
    assert "the budget of this test is small" in (run / "report.html").read_text("utf-8")

    last = [event for event in events if event["kind"] == "message"][-1]["message"]["content"]
    assert outcome["run"]["id"] in last
    [session] = (home / "sessions").glob("*.jsonl")
    kinds = [json.loads(line)["kind"] for line in session.read_text("utf-8").splitlines()]
    assert (kinds[0], kinds[-1]) == ("session", "end")


def test_without_a_terminal_and_without_yes_nothing_is_started(home: Path):
    told = rl_cli("train gsm8k-mini for 3 steps", "--json")
    assert told.code == 3
    assert rl_cli("runs", "list", "--json").rows() == []
