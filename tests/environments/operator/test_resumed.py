"""What the operator makes of a conversation that a crash cut off."""

from __future__ import annotations

from typing import Any

import pytest

from rl_cli.agent.history import UNKNOWN
from rl_cli.core.messages import Message, assistant, tool_call, user
from tests.environments.operator.simulated import Tools, play, run

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
    tools = Tools()
    history = play("train gsm8k-mini", Tools()).messages
    play(request_, tools, history)
    assert tools.called[0] == calls
    assert tools.calls[0][1]["run_id"] is None  # the session knows which
