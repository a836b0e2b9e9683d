"""What the operator makes of a conversation that a crash cut off."""

from __future__ import annotations

from typing import Any

import pytest

from rl_cli.agent.history import UNKNOWN
from rl_cli.core.messages import Message, assistant, tool_call, user
from tests.environments.operator.simulated import RUN_ID, Tools, error, play, run

CUT_OFF: list[Message] = [
    user("train gsm8k-mini"),
    assistant("Starting.", [tool_call("call_1", "rl_start_training", "{}")]),
    {"role": "tool", "content": UNKNOWN, "tool_call_id": "call_1", "name": "rl_start_training"},
]
GOES_ON = run(id="20260103-000001-gsm8k-mini", state="running")


@pytest.mark.parametrize(
    ("request_", "says"), [("train gsm8k-mini", "started no other"), ("训练 gsm8k-mini", "没有再启动")]
)
def test_a_run_that_a_cut_off_start_may_have_begun_is_not_started_again(request_: str, says: str) -> None:
    tools = Tools(runs=[GOES_ON])
    answer = play(request_, tools, CUT_OFF).answer
    assert tools.called == ["list_runs"]
    assert says in answer
    assert "20260103-000001-gsm8k-mini" in answer


@pytest.mark.parametrize(
    ("runs", "request_"),
    [
        ([], "train gsm8k-mini"),
        ([GOES_ON | {"state": "finished"}], "train gsm8k-mini"),
        ([GOES_ON], "train gsm8k-mini anyway"),
    ],
)
def test_it_is_started_where_nothing_goes_on_or_the_person_insists(
    runs: list[dict[str, Any]], request_: str
) -> None:
    tools = Tools(runs=runs)
    play(request_, tools, CUT_OFF)
    assert tools.called.count("start_training") == 1


@pytest.mark.parametrize(("request_", "calls"), [("go on", "check_status"), ("stop it", "stop_training")])
def test_go_on_and_stop_it_mean_the_run_of_the_conversation(request_: str, calls: str) -> None:
    newer = run(id="20260109-000000-tool-math", environment="tool-math")
    tools = Tools(runs=[newer, run()])
    history = play("train gsm8k-mini", Tools()).messages
    play(request_, tools, history)
    assert tools.arguments(f"rl_{calls}")[0]["run_id"] == RUN_ID


def test_stop_does_not_take_another_run_for_the_one_that_has_ended() -> None:
    newer = run(id="20260109-000000-tool-math", environment="tool-math")
    tools = Tools(runs=[newer, run(state="finished")])
    answer = play("stop", tools, play("train gsm8k-mini", Tools()).messages).answer
    assert tools.called == ["list_runs"]
    assert f"Run {RUN_ID} has ended" in answer
    assert "20260109-000000-tool-math" in answer


@pytest.mark.parametrize("runs", [[], [GOES_ON], [GOES_ON | {"state": "finished"}]])
def test_a_conversation_whose_start_was_cancelled_watches_no_other_run(runs: list[dict[str, Any]]) -> None:
    cancelled = Tools(answers={"rl_start_training": error("refused", "the person said no")})
    history = play("train gsm8k-mini", cancelled).messages
    tools = Tools(runs=runs)
    answer = play("keep watching", tools, history).answer
    assert tools.called == ["list_runs"]
    assert "This conversation has started no run." in answer
    assert ("20260103-000001-gsm8k-mini" in answer) is (runs == [GOES_ON])
