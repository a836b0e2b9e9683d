"""The training procedure played from the request to the report, against simulated tools."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from environments.policies.operator.policy import answer as next_message
from rl_cli.core.messages import tool_result, user
from tests.environments.operator.simulated import (
    EVAL,
    NAMES,
    RUN_ID,
    Tools,
    check,
    end,
    error,
    inference,
    play,
    run,
)

PREPARE = ["list_environments", "describe_environment", "select_environment", "get_current_config"]
WHOLE = [*PREPARE, "test_inference", "start_training", "check_status", "check_status", "get_results"]


def test_from_request_to_report() -> None:
    tools = Tools()
    played = play("train gsm8k-mini", tools)
    assert tools.called == WHOLE
    first, second = tools.arguments("rl_check_status")
    assert first == {"run_id": RUN_ID, "wait": True}
    assert second == {**first, "decision": second["decision"]}
    assert "0.547 now" in second["decision"]
    assert played.said[0].startswith("Plan: ")
    assert all(text.strip() for text in played.said)
    for figure in (EVAL["n"], EVAL["initial"], EVAL["final"], 0.595):
        assert f"{figure:g}" in played.answer
    assert f"{RUN_ID}/report.html" in played.answer
    assert "Checkpoint, best on validation (step 30, test 0.8200): " in played.answer
    assert "Checkpoint, last (step 40, test 0.8125): " in played.answer
    assert "deliberately imperfect" in played.answer


def test_every_figure_of_the_report_is_a_tools_figure() -> None:
    tools = Tools(answers={"rl_get_results": odd_results()})
    answer = play("train gsm8k-mini", tools).answer
    shown = set(re.findall(r"(?<![\w./-])\d+(?:\.\d+)?(?![\w/-])", answer.split("Checkpoint")[0]))
    assert {"417", "0.1919", "0.7373", "0.5454", "0.0101", "0.7474"} <= shown
    assert shown <= {"417", "0.1919", "0.7373", "0.5454", "0.0101", "0.7474", "37", "41"}


def odd_results() -> dict[str, Any]:
    """Figures that appear nowhere else, so that none can come from another place."""
    evaluation = {"n": 417, "untrained": 0.0101, "initial": 0.1919, "best": 0.7474, "final": 0.7373}
    shown = run(state="finished", reason="plateau", step=37, total_steps=41, eval=evaluation)
    return {
        "ok": True,
        "run": shown,
        "eval": evaluation,
        "gain": 0.5454,
        "report": "r.html",
        "checkpoint": "c",
        "samples": [],
        "notes": [],
    }


def test_in_chinese() -> None:
    tools = Tools()
    played = play("用 gsm8k-mini 训练 60 步，学习率 2e-4，每组 16 个，种子 3", tools)
    assert tools.called == [*PREPARE[:3], "edit_config", *WHOLE[3:]]
    (edit,) = tools.arguments("rl_edit_config")
    changes = {"grpo.steps": 60, "grpo.learning_rate": 2e-4, "grpo.group_size": 16, "seed": 3}
    assert edit == {"changes": changes}
    assert all(re.search("[\u4e00-\u9fff]", text) for text in [*played.said, played.answer])
    assert "0.2175 -> 最终 0.8125" in played.answer


def test_a_stand_in_is_announced_before_it_is_selected_and_again_in_the_report() -> None:
    tools = Tools()
    played = play("Train a GSM8K model", tools)
    assert tools.called == [*PREPARE[:3], "select_environment", *WHOLE[3:]]
    assert [arguments["name"] for arguments in tools.arguments("rl_select_environment")] == [
        "gsm8k",
        "gsm8k-mini",
    ]
    announced = played.said[3]
    for text in (announced, played.answer):
        assert "gsm8k cannot be trained here: profile single-gpu needs a GPU" in text
        assert "use a machine with one GPU" in text
    assert "I take gsm8k-mini in its place" in announced
    assert "so gsm8k-mini took its place" in played.answer


def test_no_stand_in_means_no_training() -> None:
    rows = Tools()._rl_list_environments()["environments"]
    listing = {"ok": True, "environments": [row | {"stand_in": None} for row in rows], "machine": {}}
    tools = Tools(answers={"rl_list_environments": listing})
    answer = play("train gsm8k", tools).answer
    assert "start_training" not in tools.called
    assert "cannot be trained here" in answer
    assert "Nothing was started." in answer


def test_a_misspelled_name_is_read_and_said() -> None:
    tools = Tools()
    played = play("train gsm8k-mni", tools)
    assert 'I read "gsm8k-mni" as gsm8k-mini.' in played.said[1]
    assert tools.called == WHOLE


def test_a_described_environment_is_found() -> None:
    tools = Tools()
    play("train the calculator environment", tools)
    assert tools.selected == "tool-math"
    assert "start_training" in tools.called


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ("train chess", 'no environment "chess"'),
        ("train gsm8k-large", "Nearest: gsm8k, gsm8k-mini"),
        ("train a model", "Which environment?"),
        ("train gsm8k and tool-math", "several environments"),
        ("run ls -la", "I cannot do that"),
        ("训练下棋", "没有名为“下棋”的环境"),
    ],
)
def test_no_clear_environment_starts_nothing(request_: str, part: str) -> None:
    tools = Tools()
    answer = play(request_, tools).answer
    unknown = "chess" in request_ or "large" in request_ or "下棋" in request_
    assert tools.called == ["list_environments"] + ["describe_environment"] * unknown
    assert part in answer


@pytest.mark.parametrize(
    "request_",
    [
        "don't train yet",
        "how would I train GSM8K?",
        "can you explain training?",
        "what happens if I train",
        "不要训练",
        "train gsm8k-mini tomorrow",
        "train gsm8k-mini without dropout",
        "Can you train GSM8K?",
    ],
)
def test_what_is_no_order_calls_no_tool(request_: str) -> None:
    tools = Tools()
    assert play(request_, tools).answer
    assert tools.called == []


def test_a_group_size_that_does_not_divide_keeps_the_tasks_per_step() -> None:
    tools = Tools()
    played = play("train gsm8k-mini with groups of 12", tools)
    (edit,) = tools.arguments("rl_edit_config")
    assert edit["changes"] == {"grpo.group_size": 12, "grpo.batch_size": 384}
    assert any(
        "grpo.batch_size is 384 so that each step keeps its number of tasks" in text for text in played.said
    )
    assert "grpo.batch_size is 384" in played.answer


def test_a_group_size_that_divides_leaves_the_batch_size() -> None:
    tools = Tools()
    play("train gsm8k-mini with groups of 16", tools)
    assert tools.arguments("rl_edit_config") == [{"changes": {"grpo.group_size": 16}}]


def test_a_refused_setting_is_reported_and_nothing_starts() -> None:
    refusal = error("invalid_config", "grpo.stepz is no field", "did you mean grpo.steps?")
    tools = Tools(answers={"rl_edit_config": refusal})
    answer = play("train gsm8k-mini with grpo.stepz=3", tools).answer
    assert tools.called == [*PREPARE[:3], "edit_config"]
    assert "grpo.stepz is no field" in answer
    assert "did you mean grpo.steps?" in answer
    assert "Nothing was started." in answer


def test_a_locked_field_is_explained() -> None:
    tools = Tools(answers={"rl_edit_config": error("invalid_config", "model.dtype is locked")})
    answer = play("train gsm8k-mini with model.dtype=bfloat16", tools).answer
    assert "the CPU has no fast bfloat16" in answer
    assert "start_training" not in tools.called


def test_no_signal_is_tested_again_with_more_tasks_and_then_not_started() -> None:
    flat = inference(accuracy=0.0, groups_without_signal=1.0)
    tools = Tools(
        answers={"rl_test_inference": [flat, inference(accuracy=0.0, groups_without_signal=1.0, tasks=12)]}
    )
    answer = play("train gsm8k-mini", tools).answer
    assert tools.called == [*PREPARE, "test_inference", "test_inference"]
    assert tools.arguments("rl_test_inference") == [{}, {"tasks": 12, "group_size": 8}]
    assert "did not start" in answer
    assert "no task is ever solved" in answer
    assert "accuracy 0 on 12 tasks" in answer


def test_signal_on_more_tasks_starts() -> None:
    tools = Tools(answers={"rl_test_inference": [inference(accuracy=0.0, groups_without_signal=1.0)]})
    play("train gsm8k-mini", tools)
    assert tools.called == [*PREPARE, "test_inference", *WHOLE[4:]]


def test_no_signal_starts_if_told_to() -> None:
    solved = inference(accuracy=1.0, groups_without_signal=1.0)
    tools = Tools(answers={"rl_test_inference": [solved, solved]})
    played = play("train gsm8k-mini anyway", tools)
    assert "start_training" in tools.called
    assert any("you asked to start anyway" in text for text in played.said)


def test_failed_rollouts_are_no_reason_to_start() -> None:
    tools = Tools(answers={"rl_test_inference": inference(errors={"policy": 48}, groups_without_signal=1.0)})
    answer = play("train gsm8k-mini", tools).answer
    assert tools.called == [*PREPARE, "test_inference"]
    assert "policy 48" in answer


ENTROPY = {
    "rule": "entropy_collapse",
    "message": "entropy fell from 1.2 to 0.01",
    "action": "raise temperature",
}
FALLING = {"rule": "reward_falling", "message": "reward fell from 0.560 to 0.310", "action": "stop"}


def test_an_alert_is_told_and_the_run_goes_on() -> None:
    tools = Tools(checks=[check(), check("alert", [ENTROPY], step=20), check(step=30), end()])
    played = play("train gsm8k-mini", tools)
    assert "stop_training" not in tools.called
    told = [text for text in played.said if "entropy fell from 1.2 to 0.01" in text]
    assert len(told) == 1, "an alert is told once, not at every later check"
    assert "It goes on" in told[0]


def test_a_falling_reward_is_stopped_with_its_figures() -> None:
    alert = check("alert", [FALLING], step=30, reward_last=0.31, reward_best=0.56, steps_since_best=14)
    stopping = check("due", [FALLING], step=31, state="stopping")
    tools = Tools(checks=[check(), alert, stopping, end("stopped", "the reward has been falling", step=31)])
    played = play("train gsm8k-mini", tools)
    assert tools.called == [*WHOLE[:8], "stop_training", "check_status", "check_status", "get_results"]
    (stop,) = tools.arguments("rl_stop_training")
    assert stop["run_id"] == RUN_ID
    assert all(figure in stop["reason"] for figure in ("0.31", "0.56", "14"))
    assert "stopped after 31 of 40 steps" in played.answer
    assert "finished" not in played.answer


def test_a_run_that_no_longer_improves_is_stopped() -> None:
    idle = check(step=200, total_steps=400, steps_since_best=170)
    tools = Tools(checks=[idle, end("stopped", "no longer improves", step=201)])
    play("train gsm8k-mini for 400 steps", tools)
    assert "stop_training" in tools.called


def test_a_failed_run_is_never_called_finished() -> None:
    reason = "the trainer died with exit code -9; its last lines: CUDA error at step 12"
    tools = Tools(
        checks=[check(), end("failed", reason, step=12)],
        answers={"rl_get_results": error("bad_usage", "the run has no results")},
    )
    answer = play("train gsm8k-mini", tools).answer
    assert "failed after 12 of 40 steps" in answer
    assert reason in answer
    assert f"rl-cli runs logs {RUN_ID}" in answer
    assert "finished" not in answer


def test_the_log_of_a_failed_run_is_shown_where_the_results_have_it() -> None:
    failed: dict[str, Any] = {
        "run": run(state="failed", reason="the trainer died"),
        "eval": {},
        "gain": None,
        "notes": [],
    }
    results = {"ok": True, **failed, "last_log_lines": ["step 12", "CUDA error"]}
    answer = play(
        "train gsm8k-mini", Tools(checks=[end("failed")], answers={"rl_get_results": results})
    ).answer
    assert "  step 12\n  CUDA error" in answer
    assert "finished" not in answer


def test_a_figure_that_is_missing_is_called_missing() -> None:
    results = odd_results()
    results["eval"] = results["eval"] | {"final": None}
    answer = play("train gsm8k-mini", Tools(answers={"rl_get_results": results | {"gain": None}})).answer
    assert "initial 0.1919 -> final not measured" in answer


@pytest.mark.parametrize("request_", ["train gsm8k-mini", "训练 gsm8k-mini"])
def test_an_interrupted_wait_leaves_the_run_alone(request_: str) -> None:
    tools = Tools(checks=[check("interrupted")])
    answer = play(request_, tools).answer
    assert tools.called == WHOLE[:7]
    assert f"rl-cli runs watch {RUN_ID}" in answer


@pytest.mark.parametrize(("tool", "done"), [("rl_test_inference", PREPARE), ("rl_start_training", WHOLE[:5])])
def test_a_refusal_says_how_to_allow(tool: str, done: list[str]) -> None:
    reason = "it may run code on this computer; there is no terminal to ask at, and no --yes"
    refusal = error("refused", f"the call of {tool} was refused: {reason}")
    tools = Tools(answers={tool: refusal})
    answer = play("train gsm8k-mini", tools).answer
    assert tools.called == [*done, tool.removeprefix("rl_")]
    assert f"Refused: {tool}: {reason}. To allow it, ask from a terminal, or pass --yes." in answer
    assert "Nothing was started." in answer


def refused_start(reason: str) -> dict[str, Any]:
    return error("refused", f"the call of rl_start_training was refused: {reason}")


def test_a_plain_no_is_not_answered_with_advice_to_say_yes() -> None:
    tools = Tools(answers={"rl_start_training": refused_start("the person said no")})
    answer = play("train gsm8k-mini", tools).answer
    assert answer == "Refused: rl_start_training: the person said no.\nNothing was started."


def test_a_refusal_by_a_rule_names_the_rule_and_advises_to_change_it() -> None:
    rule = "forbidden by the rule {tool: rl_start_*, do: deny} in /home/me/.config/rl-cli/config.yaml"
    answer = play("train gsm8k-mini", Tools(answers={"rl_start_training": refused_start(rule)})).answer
    assert f"{rule}. To allow it, change that rule." in answer
    assert "--yes" not in answer


@pytest.mark.parametrize(
    ("said", "changes"),
    [
        ("use seed 5 instead", {"seed": 5}),
        ("20 steps", {"grpo.steps": 20}),
        ("种子设为 7", {"seed": 7}),
    ],
)
def test_other_settings_at_the_question_are_applied_and_asked_anew(
    said: str, changes: dict[str, Any]
) -> None:
    tools = Tools(answers={"rl_start_training": [refused_start(f"the person said no: {said}")]})
    played = play("train gsm8k-mini", tools)
    assert tools.arguments("rl_edit_config") == [{"changes": changes}]
    assert tools.called.count("start_training") == 2
    assert "0.8125" in played.answer


@pytest.mark.parametrize("said", ["later", "use seed 5 on tool-math", "I do not like 20 steps", "yeah"])
def test_any_other_words_at_the_question_start_nothing(said: str) -> None:
    tools = Tools(answers={"rl_start_training": [refused_start(f"the person said no: {said}")]})
    answer = play("train gsm8k-mini", tools).answer
    assert tools.called.count("start_training") == 1
    assert "edit_config" not in tools.called
    assert said in answer


def test_a_refused_stop_leaves_the_run_and_says_so() -> None:
    alert = check("alert", [FALLING], step=30, reward_last=0.31, steps_since_best=14)
    tools = Tools(checks=[alert], answers={"rl_stop_training": error("refused", "not approved")})
    answer = play("train gsm8k-mini", tools).answer
    assert "Refused" in answer
    assert "goes on by itself" in answer


def test_a_check_that_ran_out_of_time_is_repeated_once() -> None:
    late = error("timeout", "no answer within 3600 s")
    tools = Tools(checks=[late, check(), end()])
    play("train gsm8k-mini", tools)
    assert tools.called[-4:] == ["check_status", "check_status", "check_status", "get_results"]

    tools = Tools(checks=[late])
    answer = play("train gsm8k-mini", tools).answer
    assert tools.called.count("check_status") == 2
    assert f"rl-cli runs watch {RUN_ID}" in answer


def test_checks_that_show_nothing_new_do_not_go_on_for_ever() -> None:
    tools = Tools(checks=[check()])
    answer = play("train gsm8k-mini", tools, limit=60).answer
    assert "goes on by itself" in answer


@pytest.mark.parametrize("tool", ["rl_list_environments", "rl_describe_environment", "rl_get_current_config"])
def test_other_errors_are_told_with_their_hint_and_not_repeated(tool: str) -> None:
    tools = Tools(answers={tool: error("failed", "the disk is full", "free some space")})
    answer = play("train gsm8k-mini", tools).answer
    assert tools.called.count(tool.removeprefix("rl_")) == 1
    if tool != "rl_describe_environment":  # selecting decides; describing only informs
        assert "the disk is full (free some space)" in answer
        assert "start_training" not in tools.called


def test_a_resumed_conversation_goes_on_where_it_was() -> None:
    """A fresh session that is given the messages so far makes the next call, and starts no second run."""
    first = Tools()
    played = play("train gsm8k-mini", first)
    started = next(i for i, m in enumerate(played.messages) if m.get("name") == "rl_start_training")
    tools = Tools(selected="gsm8k-mini", checks=[end()])
    answer = replayed(played.messages[: started + 1], tools)
    assert tools.called == ["check_status", "get_results"]
    assert "0.2175" in answer


def replayed(messages: list[Any], tools: Tools) -> str:
    """Goes on from `messages` without a new request."""
    messages = list(messages)
    while True:
        message = next_message(messages, NAMES.split())
        messages.append(message)
        if not (calls := message.get("tool_calls")):
            return message["content"] or ""
        for call in calls:
            result = tools.call(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append(tool_result(call, json.dumps(result)))


def test_it_can_be_told_to_train_again_with_another_setting() -> None:
    tools = Tools()
    history = play("train gsm8k-mini with seed 3", tools).messages
    tools.calls.clear()
    tools.checks = [end()]
    play("train it again with lr 1e-4", tools, history)
    assert tools.called[:3] == ["list_environments", "get_current_config", "edit_config"]
    assert tools.config["seed"] == 3
    assert tools.config["grpo.learning_rate"] == 1e-4
    assert "start_training" in tools.called


def test_a_lost_draft_is_set_up_again_from_the_conversation() -> None:
    history = play("train gsm8k-mini with seed 3", Tools()).messages
    tools = Tools()
    play("train it again", tools, history)
    assert tools.selected == "gsm8k-mini"
    assert tools.config["seed"] == 3


def test_the_answer_to_which_environment_is_taken_with_the_earlier_settings() -> None:
    tools = Tools()
    history = play("train a model for 60 steps", tools).messages
    play("gsm8k-mini", tools, history)
    assert tools.config["grpo.steps"] == 60
    assert "start_training" in tools.called


def test_anyway_after_no_signal_starts_without_choosing_again() -> None:
    flat = inference(accuracy=0.0, groups_without_signal=1.0)
    tools = Tools(answers={"rl_test_inference": [flat, flat, flat, flat]})
    history = play("train gsm8k-mini with seed 3", tools).messages
    assert "start_training" not in tools.called
    play("train anyway", tools, history)
    assert "start_training" in tools.called
    assert tools.config["seed"] == 3


def test_yes_is_no_order() -> None:
    tools = Tools()
    history = play("can you train gsm8k?", tools).messages
    play("yes", tools, [*history, user("yes")])
    assert "start_training" not in tools.called
