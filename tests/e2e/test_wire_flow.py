"""A language model behind a real HTTP endpoint goes through the whole procedure, over both wire formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.e2e.cli import rl_cli
from tests.wire.script import play
from tests.wire.server import Answer, Reply, Request, WireServer

SCRIPT = Path(__file__).parent / "scripts" / "flow.yaml"
PLAY = [
    {"evaluation": {"which": "initial", "accuracy": 0.25, "n": 40}},
    {"repeat": {"count": 20, "every": 0.02, "values": {"loss": 0.1, "reward/mean": [0.2, 0.8]}}},
    {"evaluation": {"which": "final", "accuracy": 0.75, "n": 40}},
]
THOUGHT = "One step after the other."
PROCEDURE = [
    "rl_list_environments",
    "rl_list_runs",
    "rl_describe_environment",
    "rl_select_environment",
    "rl_edit_config",
    "rl_get_current_config",
    "rl_test_inference",
    "rl_start_training",
    "rl_check_status",
]


def model(script: Path) -> Callable[[Request], Answer]:
    """Plays the script in the conversation and at checks, and answers the tasks of the inference test."""
    assistant = play(script, reasoning=THOUGHT)

    def answer(request: Request) -> Answer:
        return assistant(request) if request.body.get("tools") else Reply("#### 7")

    return answer


@pytest.mark.train
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_model_behind_an_endpoint_completes_the_procedure(home: Path, tmp_path: Path, provider: str):
    (tmp_path / "play.yaml").write_text(yaml.safe_dump(PLAY))
    script = tmp_path / "script.yaml"
    name = f"{provider}/test-model"
    text = SCRIPT.read_text("utf-8").replace("PLAY", str(tmp_path / "play.yaml")).replace("MODEL", name)
    script.write_text(text, "utf-8")
    with WireServer(model(script)) as server:
        url = server.openai_url if provider == "openai" else server.anthropic_url
        variable = f"{provider.upper()}_BASE_URL"
        told = rl_cli(
            *("ask", "--yes", "--json", "--model", name, "--base-url", url, "train a model on gsm8k-mini"),
            **{variable: url},  # for the inference test, which has the same model answer
        )
    assert server.violations == []
    assert told.code == 0, told.err + told.out[-2000:]

    messages = [event["message"] for event in told.rows() if event["kind"] == "message"]
    called = [call["function"]["name"] for message in messages for call in message.get("tool_calls", [])]
    assert list(dict.fromkeys(called)) == PROCEDURE
    assert all(message["reasoning"] == THOUGHT for message in messages[:-1])
    results = [event for event in told.rows() if event["kind"] == "result"]
    assert [event["ok"] for event in results if event["name"] == "rl_edit_config"] == [False, True]
    assert sum(not event["ok"] for event in results) == 1

    by_name = {event["name"]: event["result"] for event in results}
    assert by_name["rl_test_inference"]["results"][0]["rollouts"] == 4
    assert by_name["rl_test_inference"]["results"][0]["errors"] == {}
    outcome = by_name["rl_check_status"]
    assert outcome["run"]["state"] == "finished"
    assert outcome["run"]["step"] == 20
    assert outcome["run"]["eval"]["final"] == 0.75

    used = told.rows()[-1]["usage"]
    assert used["cached_tokens"] > used["input_tokens"] / 2
    assert messages[-1]["content"] == outcome["told"]  # the judge's words end the turn
    assert outcome["told"].startswith("It finished: 0.25 to 0.75 on 40 problems.\n")
    report = Path(outcome["told"].rpartition("Report: ")[2])
    assert report.is_file()
    assert outcome["run"]["id"] in str(report)
