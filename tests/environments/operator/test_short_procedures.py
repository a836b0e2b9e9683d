"""Everything but training, played against simulated tools."""

from __future__ import annotations

import pytest

from rl_cli.training.warm_start import NOTE
from tests.environments.operator.simulated import EVAL, RUN_ID, Tools, check, end, error, inference, play, run
from tools.dispatcher import tool_specs

ONE = run(id="20260103-000001-gsm8k-mini", state="finished", eval=EVAL, step=40)
TWO = run(id="20260103-000002-gsm8k-mini", state="finished", eval=EVAL | {"final": 0.6}, step=40)
TOOL = run(id="20260103-000003-tool-math", state="running", environment="tool-math")


def test_environments_are_listed_with_what_cannot_be_trained() -> None:
    tools = Tools()
    answer = play("list the environments", tools).answer
    assert tools.called == ["list_environments"]
    assert "- tool-math: Arithmetic with a calculator tool." in answer
    assert "not trainable here: profile single-gpu needs a GPU" in answer
    assert "stand-in: gsm8k-mini" in answer


def test_describe() -> None:
    tools = Tools()
    answer = play("介绍 gsm8k-mini", tools).answer
    assert tools.called == ["list_environments", "describe_environment"]
    assert "测试 1319" in answer
    assert "Ann has 3 apples" in answer


def test_status_is_one_look() -> None:
    tools = Tools()
    answer = play("how is it going?", tools).answer
    assert tools.calls == [("rl_check_status", {"run_id": None, "wait": False})]
    assert "grpo step 12 of 40" in answer
    assert "0.213 -> 0.547" in answer
    assert "0.84" in answer


def test_status_of_a_failed_run_says_why() -> None:
    tools = Tools(checks=[check("now", state="failed", reason="loss is NaN at step 7")])
    answer = play("status", tools).answer
    assert "failed" in answer
    assert "loss is NaN at step 7" in answer


def test_a_run_is_found_by_the_start_of_its_id() -> None:
    tools = Tools(runs=[ONE | {"id": RUN_ID}, TWO])
    play("status of 20260102-0304", tools)
    assert tools.arguments("rl_check_status")[0]["run_id"] == RUN_ID


def test_an_unknown_run_is_the_tools_to_refuse() -> None:
    refusal = error(
        "bad_usage", "unknown run '20260109-000000-gsm8k-mini'", "did you mean 20260103-000001-gsm8k-mini?"
    )
    tools = Tools(runs=[ONE], answers={"rl_get_results": refusal})
    assert (
        "did you mean 20260103-000001-gsm8k-mini?"
        in play("results of 20260109-000000-gsm8k-mini", tools).answer
    )


@pytest.mark.parametrize(
    ("request_", "part"), [("stop the run", "stopping at step 12"), ("停止训练", "停在第 12 步")]
)
def test_stop(request_: str, part: str) -> None:
    tools = Tools(runs=[run()])
    assert part in play(request_, tools).answer
    assert tools.called == ["list_runs", "stop_training"]


@pytest.mark.parametrize("request_", ["stop the run", "stop", "stop 20260103-000001-gsm8k-mini"])
def test_where_every_run_has_ended_there_is_nothing_to_stop(request_: str) -> None:
    tools = Tools(runs=[ONE, TWO])
    assert "nothing to stop" in play(request_, tools).answer
    assert tools.called == ["list_runs"]


def test_stop_by_environment_and_all() -> None:
    second = run(id="20260103-000004-gsm8k-mini")
    tools = Tools(runs=[TOOL, second, ONE])
    play("stop the gsm8k-mini run", tools)
    play("stop the tool math run", tools)
    assert [stop["run_id"] for stop in tools.arguments("rl_stop_training")] == [
        "20260103-000004-gsm8k-mini",
        "20260103-000003-tool-math",
    ]
    tools.calls.clear()
    play("stop all runs", tools)
    assert [stop["run_id"] for stop in tools.arguments("rl_stop_training")] == [
        "20260103-000003-tool-math",
        "20260103-000004-gsm8k-mini",
    ]


def test_stop_of_what_does_not_run_stops_nothing() -> None:
    tools = Tools(runs=[TOOL, ONE])
    answer = play("stop the chess run", tools).answer
    assert tools.called == ["list_runs"]
    assert "20260103-000003-tool-math" in answer


def test_watch_goes_to_the_end_and_reports() -> None:
    results = {"rl_get_results": Tools()._rl_get_results(None)}
    tools = Tools(checks=[check(), end()], runs=[run()], answers=results)
    assert "0.8125" in play("keep watching", tools).answer
    assert tools.called == ["list_runs", "check_status", "check_status", "get_results"]


def test_compare_names_the_better_run_with_its_figures() -> None:
    tools = Tools(runs=[ONE, TWO, TOOL])
    answer = play("compare the last two runs", tools).answer
    assert tools.called == ["list_runs", *["get_results"] * 3]  # the last is the test
    assert "20260103-000001-gsm8k-mini is better: 0.8125 against 0.6" in answer


@pytest.mark.parametrize(
    ("runs", "part"),
    [
        ([ONE, TWO | {"eval": EVAL | {"final": 0.80}}], "no more than chance"),
        ([ONE, TWO | {"environment": "tool-math"}], "different environments"),
        ([ONE, TWO | {"eval": EVAL | {"final": None}}], "none is called better"),
        ([ONE, TWO | {"backend": "replay"}], "nothing was trained: 20260103-000002-gsm8k-mini"),
        ([ONE], "needs two"),
        ([], "needs two"),
    ],
)
def test_compare_says_when_it_cannot_say(runs: list[dict[str, object]], part: str) -> None:
    assert part in play("compare the last two runs", Tools(runs=runs)).answer


@pytest.mark.parametrize(
    ("request_", "p", "parts"),
    [
        ("compare the last two runs", 0.003, ["is better", "alone solves 30", "McNemar"]),
        ("compare the last two runs", 0.4, ["no more than chance", "p = 0.4"]),
        ("比较最近两次运行", 0.003, ["更好", "McNemar", "30 道"]),
    ],
)
def test_compare_takes_the_paired_test_where_there_is_one(request_: str, p: float, parts: list[str]) -> None:
    runs = [
        run(id=f"20260103-00000{i}-gsm8k-mini", state="finished", eval={**EVAL, "final": final})
        for i, final in enumerate((0.70, 0.75), 1)
    ]
    paired = {"n": 400, "gained": 30, "lost": 10, "p": p, "difference": 0.05, "low": 0.02, "high": 0.08}
    tools = Tools(runs=runs, paired=paired)
    answer = play(request_, tools).answer
    assert all(part in answer for part in parts), answer
    assert tools.arguments("rl_get_results")[-1] == {"run_id": runs[1]["id"], "against": runs[0]["id"]}


def test_compare_by_name() -> None:
    tools = Tools(runs=[TOOL, ONE, TWO])
    play("compare 20260103-000001-gsm8k-mini and 20260103-000002-gsm8k-mini", tools)
    assert [found["run_id"] for found in tools.arguments("rl_get_results")][:2] == [
        "20260103-000001-gsm8k-mini",
        "20260103-000002-gsm8k-mini",
    ]


BEST = run(id="20260101-000009-gsm8k-mini", state="finished", eval=EVAL | {"final": 0.95}, step=40)


@pytest.mark.parametrize(
    "request_", ["which run is the best?", "compare my best runs", "how do my runs compare"]
)
def test_the_best_run_is_looked_for_among_all_finished_ones_that_trained(request_: str) -> None:
    replay = run(
        id="20260109-000000-gsm8k-mini", state="finished", backend="replay", eval=EVAL | {"final": 1.0}
    )
    tools = Tools(runs=[replay, TOOL, ONE, TWO, BEST])
    answer = play(request_, tools).answer
    assert tools.calls[0] == ("rl_list_runs", {"limit": 500})
    assert tools.called == ["list_runs", "get_results"]  # the test of the best two
    assert "3 finished runs that trained (not counted: 1 replays, 1 without" in answer
    assert "20260101-000009-gsm8k-mini is better: 0.95 against 0.8125" in answer
    assert "20260109-000000" not in answer


def test_without_a_measured_run_none_is_called_best() -> None:
    answer = play("哪个最好", Tools(runs=[TOOL])).answer
    assert "0 个已完成的训练运行" in answer
    assert "无法判定哪个最好" in answer


def test_how_long_a_training_would_take_is_told_from_finished_runs() -> None:
    week = {"started": "2026-01-02T03:00:00.000Z", "ended": "2026-01-09T03:10:00.000Z"}
    tools = Tools(runs=[TOOL, ONE | week | {"seconds": 600.0}])  # it was resumed after a week
    answer = play("how long would training gsm8k-mini for 80 steps take?", tools).answer
    assert "About 20 min for 80 steps of gsm8k-mini, by the 1 newest finished run here" in answer
    assert tools.called == ["list_environments", "list_runs"]
    assert "I cannot tell" in play("how long would it take to train tool-math?", tools).answer


def test_what_it_cost_is_said_by_the_command_for_that() -> None:
    assert "rl-cli costs" in play("what did that cost?", Tools()).answer


def test_deleting_is_refused_and_never_becomes_a_listing() -> None:
    for request_ in ("Delete all runs", "删除所有运行"):
        tools = Tools(runs=[ONE])
        answer = play(request_, tools).answer
        assert not tools.calls
        assert "cannot do that" in answer or "做不了" in answer


def test_a_run_that_goes_on_is_not_evaluated_yet() -> None:
    answer = play("show results", Tools(runs=[run()])).answer
    assert "It is not evaluated yet." in answer
    assert "deliberately imperfect" not in answer
    assert f"rl-cli runs watch {RUN_ID}" in answer


def test_an_unknown_environment_is_said_once_and_counts_as_not_done() -> None:
    answer = play("tell me about the quux-9 environment", Tools())
    assert answer.answer == (
        'There is no environment "quux-9". These are here: gsm8k, gsm8k-mini, tool-math.'
    )
    assert answer.declined


def test_chinese_answers_translate_the_fixed_sentences() -> None:
    notes = [
        f"{NOTE} What GRPO added to it: +0.5950 test accuracy.",
        f"W&B is offline. To upload it, with a key (WANDB_API_KEY): rl-cli runs sync {RUN_ID}",
    ]
    done = run(state="finished", reason="all 40 steps done", step=40, eval=EVAL)
    results = Tools()._rl_get_results(None) | {"run": done, "notes": notes}
    answer = play("结果", Tools(answers={"rl_get_results": results})).answer
    assert "原因：40 步全部完成" in answer
    assert "热启动是有意做得不完美的" in answer
    assert "测试准确率 +0.5950" in answer
    assert f"W&B 处于离线状态。有密钥（WANDB_API_KEY）后上传：rl-cli runs sync {RUN_ID}" in answer
    assert "all 40 steps done" in play("results", Tools(answers={"rl_get_results": results})).answer


def test_list_runs() -> None:
    assert (
        "- 20260103-000001-gsm8k-mini (gsm8k-mini): finished, step 40 of 40, accuracy 0.2175 -> 0.8125"
        in play("list runs", Tools(runs=[ONE])).answer
    )
    assert play("list runs", Tools()).answer == "There are no runs yet."


FAILED = run(id="20260103-000004-gsm8k-mini", state="failed", reason="diverged: loss is NaN at grpo step 7")


@pytest.mark.parametrize("asked", ["which runs failed?", "what runs have crashed?", "哪些运行失败了？"])
def test_which_runs_failed_lists_those_with_their_reasons(asked: str) -> None:
    answer = play(asked, Tools(runs=[ONE, FAILED])).answer
    assert FAILED["id"] in answer
    assert "diverged: loss is NaN" in answer
    assert ONE["id"] not in answer


def test_a_question_why_a_run_failed_that_did_not_says_so_and_tells_of_the_one_that_did() -> None:
    tools = Tools(checks=[check("now", state="finished", step=40)], runs=[ONE, FAILED])
    answer = play("why did the last run fail?", tools).answer
    assert "did not fail" in answer
    assert "diverged: loss is NaN" in answer


@pytest.mark.parametrize("asked", ["is the run healthy?", "show me the alerts of the last run"])
def test_the_health_of_a_run_is_its_status_with_its_alerts(asked: str) -> None:
    alert = {"rule": "clipped", "message": "80% were cut off", "action": "raise it"}
    assert "80% were cut off" in play(asked, Tools(checks=[check("now", [alert])])).answer
    assert "no alert" in play(asked, Tools(checks=[check("now")])).answer


@pytest.mark.parametrize(("state", "declined"), [("failed", True), ("finished", False)])
def test_who_asks_to_be_told_of_an_end_that_was_is_told_of_it(state: str, declined: bool) -> None:
    tools = Tools(checks=[check("now", state=state, reason="loss is NaN")], runs=[run(state=state)])
    played = play("tell me when it is done or goes wrong", tools)
    assert played.answer.startswith("No run is going on. The newest one ended")
    assert "loss is NaN" in played.answer
    assert played.declined is declined


def test_a_policy_that_was_destroyed_is_not_gone_on_from() -> None:
    alert = {"rule": "reward_collapse", "message": "reward fell from 0.25 to 0", "action": "lower the rate"}
    status_ = check("now", [alert], state="failed", reason="no signal")
    answer = play("status", Tools(checks=[status_])).answer
    assert "begin again" in answer
    assert "runs resume" not in answer


def test_inference_test_without_training() -> None:
    tools = Tools(answers={"rl_test_inference": inference(accuracy=0.25)})
    answer = play("test inference on gsm8k-mini", tools).answer
    assert "accuracy 0.25 on 3 tasks (48 sampled rollouts)" in answer
    assert "start_training" not in tools.called


def test_config_is_selected_edited_and_shown() -> None:
    tools = Tools()
    history = play("use gsm8k-mini", tools).messages
    history = play("set the learning rate to 1e-4", tools, history).messages
    assert "grpo.learning_rate = 0.0001" in play("show the config", tools, history).answer
    assert "start_training" not in tools.called


def test_editing_without_a_draft_tells_the_hint() -> None:
    assert "call rl_select_environment first" in play("set grpo.steps=20", Tools()).answer


@pytest.mark.parametrize(
    ("request_", "part"),
    [
        ("help", "no language model"),
        ("帮助", "不是语言模型"),
        ("are you a language model?", "a fixed procedure, no language model"),
        ("write a long poem about the sea", 'cannot do that: "write a long poem about the sea"'),
        ("写一首诗", "语言模型"),
        ("what is the weather today?", "language model"),
    ],
)
def test_it_says_what_it_is_and_what_it_can_do(request_: str, part: str) -> None:
    assert part in play(request_, Tools()).answer


def test_orders_are_carried_out_one_after_the_other_until_one_fails() -> None:
    tools = Tools(runs=[run()])
    play("stop the run and show results", tools)
    assert tools.called == ["list_runs", "stop_training", "get_results"]
    tools = Tools(runs=[run()], answers={"rl_stop_training": error("refused", "not approved")})
    play("stop the run and train gsm8k-mini", tools)
    assert tools.called == ["list_runs", "stop_training"]


@pytest.mark.parametrize(
    "request_", ["list the RL tools", "which tools do you have?", "list the tools", "列出工具", "有哪些工具"]
)
def test_ops_26_the_tools_are_those_of_the_registry(request_: str) -> None:
    answer = play(request_, Tools()).answer
    assert all(name in answer for name in tool_specs(("rl",)))
