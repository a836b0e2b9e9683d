"""Requests about W&B: what is understood, what is called, and that somebody else's run is only watched."""

from __future__ import annotations

from typing import Any

import pytest

from environments.policies.operator.intents import (
    Blocked,
    Hold,
    Intent,
    Results,
    Status,
    Stop,
    Train,
    WandbCompare,
    WandbList,
    WandbStop,
    Watch,
)
from environments.policies.operator.policy import answer
from environments.policies.operator.understanding import understand
from rl_cli.core.messages import user
from tests.environments.operator.simulated import Tools, check, end, error, play

PATH = "acme/math/abc123"
UNDERSTOOD: dict[type[Intent], str] = {
    Watch: """
        watch wandb:acme/math/abc123
        watch the W&B run acme/math/abc123
        watch https://wandb.ai/acme/math/runs/abc123?nw=nwuser
        monitor wandb:acme/math/abc123 and tell me when it is done
        观察 wandb:acme/math/abc123
        """,
    Status: """
        how is my W&B run acme/math/abc123 doing?
        how is wandb:acme/math/abc123 doing
        wandb:acme/math/abc123
        我的 W&B 运行 acme/math/abc123 怎么样了
        """,
    Results: "results of wandb:acme/math/abc123",
    WandbStop: """
        stop my W&B run acme/math/abc123
        停止 W&B 运行 acme/math/abc123
        """,
    Stop: "stop my W&B run",
    Hold: """
        don't stop wandb:acme/math/abc123
        stop wandb:acme/math/abc123 tomorrow
        """,
    Blocked: "stop wandb:acme/math/abc123 if it gets worse",
    WandbList: """
        list my W&B projects
        which projects do I have on W&B?
        list the runs in acme/math on W&B
        show my wandb runs in acme/math
        列出我的 W&B 项目
        """,
    WandbCompare: """
        compare W&B runs acme/math/a1 and acme/math/b2
        比较 W&B 运行 acme/math/a1 和 acme/math/b2
        """,
    Train: """
        train gsm8k-mini without wandb
        train gsm8k-mini and log to W&B
        """,
}


@pytest.mark.parametrize(
    ("request_", "kind"),
    [(line.strip(), kind) for kind, text in UNDERSTOOD.items() for line in text.strip().splitlines()],
)
def test_requests_about_wandb(request_: str, kind: type[Intent]) -> None:
    assert [type(intent) for intent in understand(request_)] == [kind]


def test_offline_is_not_off() -> None:
    [train] = understand("train gsm8k-mini with wandb offline")
    assert isinstance(train, Train)
    assert train.settings.changes == {"tracking.wandb": "offline"}


def watched(result: dict[str, Any]) -> dict[str, Any]:
    """A check of somebody else's run."""
    theirs = {"id": "wandb-acme-math-abc123", "backend": "wandb", "total_steps": None, "environment": "math"}
    return result | {"run": result["run"] | theirs, "progress": result["progress"] | {"total_steps": None}}


def test_ops_07_a_run_of_somebody_else_is_watched_to_its_end_and_never_stopped() -> None:
    bad = {"rule": "validation_falling", "message": "validation accuracy fell", "action": "stop it"}
    tools = Tools(checks=[watched(check("alert", alerts=[bad])), watched(end("lost", "W&B says crashed"))])
    played = play(f"watch wandb:{PATH}", tools)
    assert tools.called == ["check_status", "check_status", "get_results"]
    assert tools.arguments("rl_check_status")[0] == {"run_id": f"wandb:{PATH}", "wait": True}
    assert any("It is not ours" in said for said in played.said)
    assert "W&B says crashed" in played.answer
    assert "resume" not in played.answer


def test_status_shows_where_wandb_and_this_machine_disagree() -> None:
    sentence = "W&B says crashed; here it runs (step 12). What is here counts"
    tools = Tools(checks=[check("now") | {"wandb": {"state": "ok", "disagreements": [sentence]}}])
    assert sentence in play("how is it going?", tools).answer
    assert tools.called == ["check_status"]


@pytest.mark.parametrize(
    ("state", "ended", "part"),
    [
        ("lost", None, "watch over it again: rl-cli runs resume"),
        ("lost", "2026-01-02T04:00:00.000Z", "last good checkpoint: rl-cli runs resume"),
        ("failed", "2026-01-02T04:00:00.000Z", "last good checkpoint: rl-cli runs resume"),
    ],
)
def test_a_run_that_ended_badly_says_how_it_can_go_on(state: str, ended: str | None, part: str) -> None:
    shown = check("now", state=state, reason="the supervisor (pid 7) is gone")
    shown["run"]["ended"] = ended
    assert part in play("status", Tools(checks=[shown])).answer
    finished = check("now", state="finished")
    assert "resume" not in play("status", Tools(checks=[finished])).answer


def test_an_alert_of_a_rule_nobody_here_knows_is_told_with_its_advice_and_stops_nothing() -> None:
    alert = {"rule": "new_rule", "severity": "critical", "message": "it smells", "action": "open a window"}
    tools = Tools(checks=[check("alert", alerts=[alert]), end()])
    played = play("train gsm8k-mini", tools)
    assert any("Alert new_rule (critical): it smells (proposed: open a window)" in s for s in played.said)
    assert "rl_stop_training" not in [name for name, _ in tools.calls]


def test_projects_and_runs_are_listed() -> None:
    tools = Tools()
    assert "- acme/math" in play("list my W&B projects", tools).answer
    answer = play("list the W&B runs of acme/math", tools).answer
    assert "- acme/math/a1 (brave-sun-3): running, step 40, reward/mean 0.61, loss 0.02" in answer
    assert tools.calls == [("wandb_list_projects", {}), ("wandb_list_runs", {"project": "acme/math"})]


@pytest.mark.parametrize(
    "request_",
    [
        "compare W&B runs acme/math/a1 and acme/math/b2",
        "compare the wandb runs a1 and b2 in acme/math",
        "比较 W&B 运行 acme/math/a1 和 acme/math/b2",
    ],
)
def test_runs_in_wandb_are_compared(request_: str) -> None:
    tools = Tools()
    answer = play(request_, tools).answer
    assert tools.calls == [("wandb_compare_runs", {"runs": ["acme/math/a1", "acme/math/b2"]})]
    assert "lr: 0.001 | 0.0001" in answer


def test_a_comparison_without_full_names_asks_for_them() -> None:
    tools = Tools()
    played = play("compare my W&B runs", tools)
    assert "entity/project/run" in played.answer
    assert played.declined
    assert tools.calls == []


def test_stopping_in_wandb_is_a_request_that_may_be_refused() -> None:
    tools = Tools()
    assert "was asked to stop acme/math/abc123" in play(f"stop my W&B run {PATH}", tools).answer
    assert tools.calls == [("wandb_stop_run", {"run": PATH})]
    no = error("refused", "the call of wandb_stop_run was refused: the person said no")
    assert "Refused" in play(f"stop wandb:{PATH}", Tools(answers={"wandb_stop_run": no})).answer
    over = {"ok": True, "requested": False, "state": "finished", "note": "nothing was asked"}
    assert "does not run" in play(f"stop wandb:{PATH}", Tools(answers={"wandb_stop_run": over})).answer


def test_a_tool_for_wandb_that_fails_is_told() -> None:
    down = error("wandb_down", "W&B did not answer within 40 s", "is WANDB_BASE_URL right?")
    tools = Tools(answers={"wandb_list_projects": down})
    assert (
        "W&B did not answer within 40 s (is WANDB_BASE_URL right?)" in play("list W&B projects", tools).answer
    )


def test_where_the_toolset_is_not_offered_that_is_said() -> None:
    said = answer([user("list my W&B projects")], ["rl_list_runs"])["content"]
    assert said == "I would need the tool wandb_list_projects, which is not offered here."
