"""Orders to go on with a run that has ended: what is understood, which run is meant, what is called."""

from __future__ import annotations

from typing import Any

import pytest

from environments.policies.operator.intents import Blocked, Hold, Intent, Resume, Status, Stop, Train, Watch
from environments.policies.operator.understanding import understand
from rl_cli.core.messages import Message
from tests.environments.operator.simulated import RUN_ID, Tools, check, end, error, play, run

FAILED = run(id="20260103-000001-gsm8k-mini", state="failed")
OLDER = run(id="20260101-000001-tool-math", state="stopped", environment="tool-math")

UNDERSTOOD: dict[type[Intent], str] = {
    Resume: """
        resume
        resume the run
        resume training
        please resume run 20260102-030405
        could you resume the run?
        go on with the last run
        go on with the last run from its checkpoint
        continue training from the last checkpoint
        pick up where it left off
        carry on with the failed run
        resume the run, and tell me when it is done
        resume the run and watch it
        恢复训练
        恢复运行 20260102-030405
        请恢复上次的运行
        从最后一个检查点继续
        继续上次的训练
        断点续训
        恢复训练，完成后告诉我
        """,
    Status: """
        can you resume the run?
        should I resume the run?
        how do I resume a run?
        能恢复训练吗？
        """,
    Hold: """
        don't resume it
        resume it tomorrow
        不要恢复训练
        """,
    Blocked: """
        resume the run if it failed
        resume the run without dropout
        resume the run with a fast lr
        train gsm8k-mini and resume the old one
        watch the run and resume it when it crashes
        """,
    Watch: """
        continue
        resume watching
        keep going
        继续观察
        """,
}


@pytest.mark.parametrize(
    ("request_", "kind"),
    [(line.strip(), kind) for kind, text in UNDERSTOOD.items() for line in text.strip().splitlines()],
)
def test_only_an_order_resumes(request_: str, kind: type[Intent]) -> None:
    assert [type(intent) for intent in understand(request_)] == [kind]


def test_settings_in_the_sentence_are_the_changes() -> None:
    [stop, resume] = understand("stop the run, then resume it with lr 1e-5 for 80 steps")
    assert isinstance(stop, Stop)
    assert isinstance(resume, Resume)
    assert resume.settings.changes == {"grpo.learning_rate": 1e-5, "grpo.steps": 80}


@pytest.mark.parametrize(
    "request_",
    [
        "train gsm8k-mini, and tell me when it is done or goes wrong",
        "train gsm8k-mini and let me know when it finishes",
        "训练 gsm8k-mini，完成或出错时告诉我",
    ],
)
def test_wanting_to_be_told_is_no_condition(request_: str) -> None:
    assert [type(intent) for intent in understand(request_)] == [Train]


@pytest.mark.parametrize(
    ("request_", "run_id", "changes"),
    [
        ("resume the run", FAILED["id"], None),
        ("resume 20260101-0000", OLDER["id"], None),
        ("resume the tool-math run", OLDER["id"], None),
        ("恢复训练，学习率 1e-4", FAILED["id"], {"grpo.learning_rate": 1e-4}),
    ],
)
def test_resume_goes_on_and_watches_to_the_end(
    request_: str, run_id: str, changes: dict[str, Any] | None
) -> None:
    tools = Tools(runs=[FAILED, OLDER], checks=[check(), end()])
    played = play(request_, tools)
    assert tools.called == ["list_runs", "resume_training", "check_status", "check_status", "get_results"]
    wanted = {"run_id": run_id} | ({"changes": changes} if changes else {})
    assert tools.arguments("rl_resume_training") == [wanted]
    assert tools.arguments("rl_check_status")[0]["run_id"] == run_id
    step = "从第 10 步继续" if "恢复" in request_ else "goes on from step 10"
    assert any(step in said for said in played.said)
    assert not played.declined


def test_the_run_of_the_conversation_is_meant_before_the_newest() -> None:
    tools = Tools(checks=[end("stopped", "asked for by the person")])
    history: list[Message] = play("train gsm8k-mini", tools).messages
    mine = run(state="stopped")
    later = Tools(runs=[FAILED, mine], checks=[end()])
    play("resume it", later, history)
    assert later.arguments("rl_resume_training") == [{"run_id": RUN_ID}]


@pytest.mark.parametrize(
    ("runs", "request_", "part", "declined"),
    [
        ([], "resume the run", "no runs yet", True),
        ([run()], "resume the run", "nothing to resume", False),
        ([run()], "恢复训练", "无需恢复", False),
        ([FAILED], "resume the chess run", 'No run is called "chess"', True),
        ([FAILED], "resume 20260909-111111", "20260909-111111", True),
    ],
)
def test_where_there_is_nothing_to_resume_nothing_is_called(
    runs: list[dict[str, Any]], request_: str, part: str, declined: bool
) -> None:
    tools = Tools(runs=runs)
    played = play(request_, tools)
    assert part in played.answer
    assert tools.called == ["list_runs"]
    assert played.declined is declined


def test_what_the_tool_refuses_is_told_and_nothing_is_watched() -> None:
    refusal = error("bad_usage", "all 40 steps are done", "raise grpo.steps: --set grpo.steps=80")
    tools = Tools(runs=[FAILED], answers={"rl_resume_training": refusal})
    played = play("resume the run", tools)
    assert "raise grpo.steps" in played.answer
    assert "Nothing was started." in played.answer
    assert played.declined
    assert tools.called == ["list_runs", "resume_training"]


def test_nothing_to_watch_says_how_to_go_on_with_one_that_ended() -> None:
    assert "resume the run" in play("keep watching", Tools(runs=[FAILED])).answer
