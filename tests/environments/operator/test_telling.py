"""Wishes to be told of the end of a run, in many words, are understood as watching it."""

from __future__ import annotations

import time

import pytest

from environments.policies.operator.intents import (
    Hold,
    Intent,
    Resume,
    Status,
    Stop,
    TestInference,
    Train,
    Unknown,
    Watch,
)
from environments.policies.operator.understanding import understand
from environments.policies.operator.wording import LIMIT
from tests.environments.operator.simulated import RUN_ID, Tools, check, end, error, play, run

UNDERSTOOD: dict[tuple[type[Intent], ...], str] = {
    (Watch,): """
        tell me when it is done
        tell me when it is done or goes wrong
        let me know when it's finished
        please let me know when it's over, or if it fails
        notify me once it finishes
        ping me when it's done
        ping me if it diverges
        could you tell me when the run is done?
        let me know if anything goes wrong
        when it is done, tell me
        watch the run and tell me when it is done
        keep me posted
        tell me when gsm8k-mini is done
        tell me when wandb:acme/math/abc123 is done
        完成了告诉我
        做完了告诉我
        完成或者出错的时候告诉我
        跑完通知我
        如果出错就告诉我
        通知我运行什么时候结束
        训练结束后告诉我结果
        """,
    (Train,): """
        train gsm8k-mini, and tell me when it is done or goes wrong
        train gsm8k-mini and let me know when it's finished
        train gsm8k-mini and when it's done let me know
        train gsm8k-mini, ping me if it diverges
        train gsm8k-mini and keep me posted
        训练 gsm8k-mini，完成或者出错的时候告诉我
        训练 gsm8k-mini，完成了告诉我
        训练gsm8k-mini并在完成后告诉我
        用 gsm8k-mini 训练，结束或发散时提醒我
        """,
    (Resume,): """
        resume the run, and tell me when it is done
        用学习率 1e-4 继续上次训练
        """,
    (Stop, Watch): "stop the run and tell me when it has stopped",
    (TestInference,): "test inference on gsm8k-mini and tell me when it is done",
    (Hold,): "train gsm8k-mini tomorrow and tell me when it is done",
    (Unknown,): "don't tell me when it is done\nsync my runs to W&B\n把运行同步到 W&B",
    (Status,): "why did the last run fail?\n上次训练为什么失败",
}
TABLE = [(line.strip(), kinds) for kinds, text in UNDERSTOOD.items() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("phrase", "kinds"), TABLE, ids=[phrase for phrase, _ in TABLE])
def test_it_is_understood(phrase: str, kinds: tuple[type[Intent], ...]) -> None:
    assert tuple(type(intent) for intent in understand(phrase)) == kinds


@pytest.mark.parametrize("phrase", [phrase for phrase, kinds in TABLE if kinds == (Train,)])
def test_no_word_of_it_is_left_over(phrase: str) -> None:
    answer = play(phrase, Tools()).answer
    assert "Not understood" not in answer
    assert "未能理解" not in answer


def test_a_live_run_is_watched_to_its_end() -> None:
    tools = Tools(checks=[check(), end()], runs=[run()])
    play("tell me when it is done", tools)
    assert tools.called == ["list_runs", "check_status", "check_status", "get_results"]
    assert tools.arguments("rl_check_status")[0] == {"run_id": RUN_ID, "wait": True}


NO_KEY = error("wandb_no_key", "no W&B key is set", "export WANDB_API_KEY=...")


@pytest.mark.parametrize(
    ("request_", "tool"),
    [
        ("list my W&B projects", "wandb_list_projects"),
        ("compare W&B runs acme/math/a1 and acme/math/b2", "wandb_compare_runs"),
        ("watch wandb:acme/math/abc123", "rl_check_status"),
        ("how is it going?", "rl_check_status"),
        ("show results", "rl_get_results"),
    ],
)
def test_a_request_whose_call_failed_is_not_done(request_: str, tool: str) -> None:
    played = play(request_, Tools(answers={tool: NO_KEY}))
    assert played.declined
    assert "no W&B key is set" in played.answer
    assert "not affected" not in played.answer


@pytest.mark.parametrize(
    ("request_", "command"),
    [
        ("sync my runs to W&B", "rl-cli runs sync"),
        ("把运行同步到 W&B", "rl-cli runs sync"),
        ("clean up my runs", "rl-cli runs clean"),
        ("清理运行", "rl-cli runs clean"),
        ("judge the run", "rl-cli monitor --once"),
    ],
)
def test_what_only_a_command_does_names_it(request_: str, command: str) -> None:
    played = play(request_, Tools())
    assert played.declined
    assert command in played.answer


def test_what_is_missing_is_told_in_the_language_of_the_request() -> None:
    lacking = error("no_key", "no W&B key was found", "set WANDB_API_KEY, or run `wandb login`")
    answer = play("列出我的 W&B 项目", Tools(answers={"wandb_list_projects": lacking})).answer
    assert "没有找到 W&B 密钥（请设置 WANDB_API_KEY" in answer
    instead = play("训练 gsm8k", Tools())
    assert not any("on this machine" in said or "on a machine with" in said for said in instead.said)


@pytest.mark.parametrize("piece", ["tell me when it is ", "and tell me ", "-_.1", "如果完成", "when it or "])
def test_long_nonsense_takes_no_time(piece: str) -> None:
    began = time.monotonic()
    understand((piece * LIMIT)[:LIMIT])
    assert time.monotonic() - began < 5
