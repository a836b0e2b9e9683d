"""The model goes down while a run is watched: the run goes on, and the person is told the truth."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from environments.agent_loop import StopReason
from environments.policies.anthropic.messages import AnthropicPolicy
from environments.policies.base import Policy
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.endpoints.token_estimate import text_tokens
from environments.policies.openai.chat import OpenAIChatPolicy
from rl_cli.runs.store import list_runs
from tests.monitoring.test_watched_turns import EVALUATED, OFTEN, REQUEST, answer, decisions, trains
from tests.runs.kit import steps
from tests.wire.replies import Answer, Call, Refusal, Reply
from tests.wire.script import play
from tests.wire.server import Request, WireServer

ATTEMPTS = 2
WAIT = WaitPolicy(attempts=ATTEMPTS, base=0.01)
TURNS_TO_START = 3
ALARMS = {"kl": [0.1, 9.0]}
DECIDES = Reply(calls=[Call("decide", {"decision": "continue", "reason": "noise", "message": "It is over."})])


def policy_at(server: WireServer, provider: str) -> Policy:
    if provider == "anthropic":
        return AnthropicPolicy(Endpoint("anthropic", "m", server.anthropic_url), WAIT)
    return OpenAIChatPolicy(Endpoint("openai", "m", server.openai_url), WAIT)


def judges(request: Request) -> bool:
    return '"decide"' in json.dumps(request.body["tools"])


def script(home: Path) -> Callable[[Request], Answer]:
    """Starts a run that raises alerts and is checked often, and watches it."""
    path = home / "script.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        yaml.safe_dump(trains(home, [EVALUATED[0], steps(30, every=0.1, **ALARMS), EVALUATED[1]], OFTEN))
    )
    return play(path)


@pytest.mark.parametrize(
    ("provider", "why"), [("openai", "due"), ("anthropic", "alert"), ("openai", "end"), ("anthropic", "end")]
)
def test_a_model_that_fails_from_some_check_on_is_replaced_by_the_rules(
    runs: Path, why: str, provider: str
) -> None:
    converse, down = script(runs), threading.Event()

    def model(request: Request) -> Answer:
        if judges(request) and f"Why now: {why}" in json.dumps(request.body["messages"][-1]):
            down.set()
        if down.is_set():
            return Refusal(500, "the machine is on fire")
        return DECIDES if judges(request) else converse(request)

    with WireServer(model) as server:
        policy = policy_at(server, provider)
        [result] = answer(runs, policy, REQUEST)
    assert server.violations == []
    [run] = list_runs(runs)
    assert (run.state()["state"], run.state()["step"]) == ("finished", 30)

    made = decisions(run)
    first = next(number for number, event in enumerate(made) if event["why"] == why)
    by_model, by_rule = made[:first], made[first:]
    assert {event["by"] for event in by_model} <= {policy.name}
    assert {event["by"] for event in by_rule} == {"rules"}
    assert all(event["reason"].count("500") == 1 for event in by_rule)

    asked = [request for request in server.requests if judges(request)]
    assert len(asked) == len(by_model) + ATTEMPTS * len(by_rule)
    assert max(text_tokens(json.dumps(request.body)) for request in asked) < 1500
    assert len(server.requests) - len(asked) == TURNS_TO_START

    assert result.stop is StopReason.FINISHED
    check_told(result.text, str(run.path))
    assert "500" in result.text
    on_the_way = len(by_rule) - 1
    said = f"Decided by rule, not by the model: {on_the_way} of {len(made) - 1} checks; the last: continue, "
    assert (said in result.text) == (on_the_way > 0)


def test_a_model_whose_server_is_gone_after_the_start(runs: Path) -> None:
    converse = script(runs)
    server = WireServer(converse)
    server.__enter__()

    def close_once_it_runs(event: dict[str, Any]) -> None:
        if not server.stopping.is_set():
            server.__exit__()

    policy = policy_at(server, "openai")
    [result] = answer(runs, policy, REQUEST, on_progress=close_once_it_runs)
    [run] = list_runs(runs)
    assert (run.state()["state"], run.state()["step"]) == ("finished", 30)
    made = decisions(run)
    assert {event["why"] for event in made} == {"due", "alert", "end"}
    assert {event["by"] for event in made} == {"rules"}
    assert len(server.requests) == TURNS_TO_START
    assert result.stop is StopReason.FINISHED
    check_told(result.text, str(run.path))
    assert f"Decided by rule, not by the model: {len(made) - 1} of {len(made) - 1} checks" in result.text


def check_told(text: str, run: str) -> None:
    """The figures, that the model did not write it and why, and where the report is."""
    assert "Its file plays a test accuracy of 0.2200, then 0.8100" in text
    assert "nothing was trained" in text
    assert "rl-cli wrote this, not the model: " in text
    assert f"tried {ATTEMPTS} times" in text
    assert "Alerts: " in text
    report = Path(text.rpartition("Report: ")[2])
    assert report.is_file()
    assert str(report).startswith(run)
