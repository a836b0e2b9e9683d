"""`Train ..., and tell me when it is done or goes wrong`: what it costs, and what the person is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from environments.agent_loop import AssistantMessage, StopReason
from rl_cli.agent.assistant import TurnResult
from rl_cli.agent.session_store import new_session, open_session
from rl_cli.core.files import read_json
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.store import list_runs
from tests.agent.talk import check_well_formed, talking
from tests.monitoring.kit import Counted, decides
from tests.runs.kit import steps, write_play

REQUEST = "Train gsm8k-mini, and tell me when it is done or goes wrong"
OFTEN = {"health.first_check_seconds": 0.4, "health.check_every_seconds": 0.6}
RARELY = {"health.first_check_seconds": 3600}
TOLD = "It finished: test accuracy 0.22 to 0.81 on 400 problems."
EVALUATED = [
    {"evaluation": {"which": "initial", "accuracy": 0.22, "n": 400, "step": 0}},
    {"evaluation": {"which": "final", "accuracy": 0.81, "n": 400, "step": 30}},
]


def trains(home: Path, play: Any, health: dict[str, Any], start: Any = None) -> list[Any]:
    """Replies that start a played run and wait for it."""
    changes = {
        "backend.name": "replay",
        "backend.file": str(write_play(home / "plays", play)),
        "tracking.wandb": "off",
        **health,
    }
    return [
        {"when": {"contains": "Train"}, "tool_calls": [call("rl_select_environment", name="gsm8k-mini")]},
        {
            "when": {"last_tool": "rl_select_environment"},
            "tool_calls": [call("rl_edit_config", changes=changes)],
        },
        {
            "when": {"last_tool": "rl_edit_config", "ok": True},
            "tool_calls": [start or call("rl_start_training", watch=True)],
        },
    ]


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def answer(home: Path, policy: Counted, *requests: str, **fields: Any) -> list[TurnResult]:
    async def main() -> list[TurnResult]:
        helper = talking(home, policy, new_session(home, policy.name), toolsets=("rl",), **fields)
        try:
            return [await helper.turn(request) for request in requests]
        finally:
            await helper.close()

    return asyncio.run(main())


def decisions(run: RunDir) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["kind"] == "decision" and "why" in event]


def test_watching_costs_checks_and_alerts_and_one_compact_request(runs: Path) -> None:
    cut = {"completion/clipped": [0.1, 0.9], "kl": [0.1, 9.0]}
    play = [EVALUATED[0], steps(30, every=0.1, **cut), EVALUATED[1]]
    policy = Counted(
        runs / "model",
        [
            decides("due", "continue", "noise", repeat=True),
            decides("alert", "continue", "one alert", repeat=True),
            decides("end", "continue", "it ended", TOLD),
            {"when": {"contains": "tell me more"}, "text": "a long story, " * 2000, "repeat": True},
            *trains(runs, play, OFTEN),
        ],
    )
    shown: list[Any] = []
    talked = ["tell me more " * 500] * 3
    *before, result = answer(runs, policy, *talked, REQUEST, on_event=shown.append)
    [run] = list_runs(runs)
    assert run.state()["state"] == "finished"

    taken = read_json(run.path / "checks.json")
    checks, alerts = len(taken["log"]), sum(event["kind"] == "alert" for event in run.events())
    assert checks
    assert alerts
    assert 2 < len(policy.compact()) <= checks + alerts + 1
    assert len(decisions(run)) == len(policy.compact())
    assert max(policy.compact()) < 1500
    kinds = [session.endswith("-judge") for session, _, _ in policy.requests]
    assert kinds == sorted(kinds)  # after the start, compact requests only
    assert all(e["evidence"]["step"] >= 0 and e["by"] == policy.name for e in decisions(run))

    assert result.stop is StopReason.FINISHED
    assert result.text.startswith(TOLD)
    assert str(run.path / "report.html") in result.text
    assert Path(result.text.rpartition(" ")[2]).is_file()
    assert sum(turn.usage.requests for turn in [*before, result]) == len(policy.requests)
    last = [event for event in shown if isinstance(event, AssistantMessage)][-1]
    assert last.message["content"] == result.text
    session = open_session(runs, "latest")
    assert session.history.messages()[-1]["content"] == result.text
    assert not session.history.unfinished
    session.close()


def test_the_next_request_of_the_conversation_is_answered_as_ever(runs: Path) -> None:
    policy = Counted(
        runs / "model",
        [
            decides("end", "continue", "it ended", TOLD),
            *trains(runs, [steps(3)], RARELY),
            {"when": {"contains": "and now"}, "text": "nothing is running"},
        ],
    )
    _, second = answer(runs, policy, REQUEST, "and now?")
    assert second.text == "nothing is running"
    sent = policy.requests[-1][1]
    check_well_formed(sent[1:])
    assert [m["role"] for m in sent[-3:]] == ["tool", "assistant", "user"]
    assert (sent[-2]["content"] or "").startswith(TOLD)


def test_a_decision_to_stop_stops_the_run_and_the_end_is_told(runs: Path) -> None:
    policy = Counted(
        runs / "model",
        [
            decides("due", "stop", "reward 0.3 at step 5"),
            decides("end", "continue", "stopped", "I stopped it: reward 0.3."),
            *trains(runs, [steps(2000, every=0.1)], OFTEN),
        ],
    )
    [result] = answer(runs, policy, REQUEST)
    [run] = list_runs(runs)
    state = run.state()
    assert (state["state"], state["reason"]) == ("stopped", "assistant: reward 0.3 at step 5")
    assert [(event["what"], event["why"]) for event in decisions(run)] == [("stop", "due"), ("end", "end")]
    assert result.text.startswith("I stopped it")
    assert len(policy.compact()) == 2


def test_what_only_the_person_can_decide_comes_back_to_the_conversation(runs: Path) -> None:
    policy = Counted(
        runs / "model",
        [
            decides("due", "ask", "the reward is odd", "Shall I go on?"),
            *trains(runs, [steps(2000, every=0.1)], OFTEN),
            {"when": {"last_tool": "rl_start_training", "contains": "Shall I go on?"}, "text": "Shall I?"},
        ],
    )
    [result] = answer(runs, policy, REQUEST)
    assert result.text == "Shall I?"
    [run] = list_runs(runs)
    assert run.state()["state"] == "running"
    [made] = decisions(run)
    assert (made["what"], made["message"]) == ("ask", "Shall I go on?")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"text": "All went well."}, "did not answer with a decision"),
        ({"text": "```json\n{}\n```"}, "did not answer with a decision"),
        (
            {"text": "I look.", "tool_calls": [{"name": "rl_get_results"}]},
            "called rl_get_results where it was asked for a decision only",
        ),
    ],
    ids=["prose", "for no person to read", "another tool"],
)
def test_a_model_that_never_decides_is_replaced_by_the_rules_and_costs_no_request_of_the_conversation(
    runs: Path, said: dict[str, Any], why: str
) -> None:
    play = [EVALUATED[0], steps(12, every=0.1), EVALUATED[1]]
    other = [{"when": {"contains": "Why now: "}, "repeat": True, **said}]
    policy = Counted(runs / "model", [*other, *trains(runs, play, OFTEN)])
    [result] = answer(runs, policy, REQUEST)
    [run] = list_runs(runs)
    made = decisions(run)
    assert len(made) >= 2
    assert all(event["by"] == "rules" for event in made)
    assert all(f"(decided by rule: {policy.name} {why})" in event["reason"] for event in made[:-1])
    assert len(policy.requests) - len(policy.compact()) == 3
    assert len(policy.compact()) == len(made)
    assert result.stop is StopReason.FINISHED
    assert "0.22" in result.text
    assert "0.81" in result.text
    assert f"Decided by rule, not by the model: {len(made) - 1} of {len(made) - 1} checks" in result.text
    if said["text"].startswith("All"):
        assert result.text.startswith(said["text"])
    else:
        assert f"rl-cli wrote this, not the model: {policy.name} {why}." in result.text


def test_what_else_was_asked_for_is_done_after_the_end(runs: Path) -> None:
    policy = Counted(
        runs / "model",
        [
            decides("end", "change", "the comparison was asked for", "Now I compare."),
            *trains(runs, [EVALUATED[0], steps(3), EVALUATED[1]], RARELY),
            {
                "when": {"last_tool": "rl_start_training", "contains": '"why": "end"'},
                "tool_calls": [call("rl_list_runs")],
            },
            {"when": {"last_tool": "rl_list_runs"}, "text": "It is the only one: 0.81."},
        ],
    )
    [result] = answer(runs, policy, f"{REQUEST}, then compare it with the others")
    assert result.text == "It is the only one: 0.81."
    assert len(policy.compact()) == 1


def test_a_model_that_has_nothing_to_say_at_the_end_is_helped_out(runs: Path) -> None:
    play = [EVALUATED[0], steps(3), EVALUATED[1]]
    policy = Counted(runs / "model", [decides("end", "stop", "over"), *trains(runs, play, RARELY)])
    [result] = answer(runs, policy, REQUEST)
    assert "0.81" in result.text
    assert f"rl-cli wrote this, not the model: {policy.name} had nothing to say." in result.text
    assert len(policy.requests) == 4


def test_an_answer_without_the_figures_gets_them(runs: Path) -> None:
    play = [EVALUATED[0], steps(30), EVALUATED[1]]
    policy = Counted(
        runs / "model",
        [decides("end", "continue", "it ended", "It went well."), *trains(runs, play, RARELY)],
    )
    [result] = answer(runs, policy, REQUEST)
    assert "0.81" in result.text


def test_a_failure_that_the_answer_does_not_call_one_is_told(runs: Path) -> None:
    play = [EVALUATED[0], steps(3), {"fail": "no more data"}]
    policy = Counted(
        runs / "model",
        [decides("end", "continue", "it ended", "All went well."), *trains(runs, play, RARELY)],
    )
    [result] = answer(runs, policy, REQUEST)
    assert result.text.startswith("All went well.\n")
    assert "failed at step 3" in result.text
    assert "no more data" in result.text


class Slow(Counted):
    """Never answers when it is to judge."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.asked = asyncio.Event()

    @asynccontextmanager
    async def open(self, rollout_id: str, *args: Any, **more: Any) -> AsyncIterator[Any]:
        async with super().open(rollout_id, *args, **more) as session:
            yield _Silent(self) if rollout_id.endswith("-judge") else session


class _Silent:
    def __init__(self, owner: Slow) -> None:
        self.owner = owner

    async def complete(self, new_messages: Any) -> Any:
        self.owner.asked.set()
        await asyncio.Event().wait()


def test_the_person_can_interrupt_a_judgement_which_is_then_due_again(runs: Path) -> None:
    interrupted = {"last_tool": "rl_start_training", "contains": '"why": "interrupted"'}
    replies = [*trains(runs, [steps(2000, every=0.1)], OFTEN), {"when": interrupted, "text": "It goes on."}]

    async def main() -> TurnResult:
        policy, event = Slow(runs / "model", replies), asyncio.Event()
        helper = talking(runs, policy, new_session(runs, policy.name), toolsets=("rl",), interrupted=event)
        turn = asyncio.ensure_future(helper.turn(REQUEST))
        await asyncio.wait_for(policy.asked.wait(), 60)
        event.set()
        result = await asyncio.wait_for(turn, 60)
        await helper.close()
        return result

    assert asyncio.run(main()).text == "It goes on."
    [run] = list_runs(runs)
    assert run.state()["state"] == "running"
    assert DueChecks(run).seconds_left() == 0
