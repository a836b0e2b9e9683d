"""Many requests in one session: over turns, processes, kills and changes of the model."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from environments.agent_loop import StopReason
from environments.policies.base import Bounds, Meter, PolicyError
from environments.policies.operator.policy import OperatorPolicy
from environments.policies.scripted import ScriptedPolicy
from rl_cli.agent.session_store import list_sessions, new_session, open_session
from rl_cli.core.messages import Message, user
from tests.agent.talk import STARTED, Playing, calls, check_well_formed, events, talk, talking
from tools.dispatcher import ApprovalRequest, Verdict

START_A = calls(("start", {"name": "A"}))


@pytest.fixture(autouse=True)
def _nothing_started() -> None:
    STARTED.clear()


def test_the_next_sentence_knows_the_conversation_in_one_process_and_in_the_next(home: Path) -> None:
    policy = Playing(START_A, "started", "as before")
    talk(home, policy, "start A", "status?")
    assert policy.opened == [list_sessions(home)[0].id]  # one session of the policy serves both turns
    again = Playing("still there")
    [result] = talk(home, again, "and now?")
    assert result.text == "still there"
    system, *live = policy.requests[-1]
    assert again.requests[0][1 : len(live) + 1] == live
    assert again.requests[0][0] == system
    assert again.requests[0][-1] == user("and now?")
    check_well_formed(again.requests[0][1:])


def test_agt_03_after_a_kill_the_model_is_told_that_the_result_is_unknown(home: Path) -> None:
    """The call was recorded and run; the process died before the result was."""
    talk(home, Playing(START_A, "started"), "start A")
    path = list_sessions(home)[0].path
    lines = path.read_text("utf-8").splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if json.loads(line)["kind"] == "result")
    path.write_text("".join(lines[:at]), "utf-8")
    assert STARTED == ["A"]

    def careful(messages: list[Message]) -> Any:
        unknown = "result_unknown" in (messages[-2]["content"] or "")
        return calls(("status", {"name": "A"})) if unknown else START_A

    policy = Playing(careful, "it runs")
    [result] = talk(home, policy, "go on")
    assert [c.name for c in result.calls] == ["status"]
    assert STARTED == ["A"]
    assert [m["role"] for m in policy.requests[0]] == ["system", "user", "assistant", "tool", "user"]
    assert open_session(home, "latest").history.unfinished is False


def test_a_paid_call_is_on_record_before_it_runs(home: Path) -> None:
    seen: list[str] = []

    async def look(request: Any) -> Any:
        from tools.dispatcher import Verdict

        seen.extend(event["kind"] for event in events(home))
        return Verdict(True)

    talk(home, Playing(START_A, "started"), "start A", approve=look)
    assert seen[-2:] == ["message", "call"]


def test_a_request_without_an_answer_is_kept_and_not_run_again_by_itself(home: Path) -> None:
    with pytest.raises(RuntimeError):
        talk(home, Playing(RuntimeError("the machine is off")), "start A")
    policy = Playing("yes")
    talk(home, policy, "are you there?")
    assert [m["content"] for m in policy.requests[0][1:]] == ["start A", "are you there?"]
    assert len(policy.requests) == 1


def test_a_failed_request_ends_the_turn_and_the_next_one_is_asked_anew(home: Path) -> None:
    policy = Playing(PolicyError("the server is down"), "here")
    first, second = talk(home, policy, "one", "two")
    assert (first.stop, first.reason) == (StopReason.ERROR, "the server is down")
    assert second.text == "here"
    assert len(policy.opened) == 2
    assert [m["content"] for m in policy.requests[1][1:]] == ["one", "two"]


def test_a_cancelled_turn_leaves_a_session_to_go_on_with(home: Path) -> None:
    async def main() -> None:
        session = new_session(home, "test/playing")
        policy = Playing(calls(("start", {"name": "A"}), ("wait_long", {})), "fine")
        helper = talking(home, policy, session, approve=_never)
        turn = asyncio.ensure_future(helper.turn("start A"))
        await asyncio.wait({turn}, timeout=0.2)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        result = await helper.turn("what happened?")
        assert result.text == "fine"
        check_well_formed(policy.requests[-1][1:])
        await helper.close()

    asyncio.run(main())
    ends = [event["stop"] for event in events(home) if event["kind"] == "end"]
    assert ends == ["interrupted", "finished"]


async def _never(request: Any) -> Any:
    await asyncio.Event().wait()


def test_an_interrupt_ends_the_turn_and_not_the_conversation(home: Path) -> None:
    async def main() -> None:
        interrupted = asyncio.Event()
        policy = Playing(START_A, "never heard", "here")
        session = new_session(home, policy.name)
        helper = talking(
            home, policy, session, interrupted=interrupted, on_event=lambda event: interrupted.set()
        )
        first = await helper.turn("start A")
        assert first.stop is StopReason.INTERRUPTED
        assert first.reason == "interrupted"
        interrupted.clear()
        helper.on_event = lambda event: None
        second = await helper.turn("go on")
        assert second.stop is StopReason.FINISHED
        check_well_formed(policy.requests[-1][1:])
        await helper.close()

    asyncio.run(main())


def test_another_model_takes_over_the_conversation(home: Path) -> None:
    async def main() -> None:
        one, two = Playing("I am one", name="test/one"), Playing("I am two", name="test/two")
        helper = talking(home, one, new_session(home, one.name))
        await helper.turn("who are you?")
        helper.change_model(two, 32_000)
        assert (await helper.turn("and now?")).text == "I am two"
        assert [m["content"] for m in two.requests[0][1:]] == ["who are you?", "I am one", "and now?"]
        await helper.close()

    asyncio.run(main())
    assert open_session(home, "latest").history.model == "test/two"


def test_bounds_are_asked_at_each_turn_and_a_deadline_ends_it(home: Path) -> None:
    asked: list[Meter | None] = []

    def bounds() -> Bounds:
        asked.append(None)
        return Bounds(deadline=0.0 if len(asked) >= 2 else None)

    first, second = talk(home, Playing("one", "two"), "1", "2", bounds=bounds)
    assert first.stop is StopReason.FINISHED
    assert (second.stop, second.reason) == (StopReason.DEADLINE, "the time that was allowed is over")


def test_a_person_who_takes_long_to_answer_takes_no_time_of_the_assistant(home: Path) -> None:
    answered = asyncio.Event()

    async def slow(request: ApprovalRequest) -> Verdict:
        await asyncio.sleep(0.4)
        answered.set()
        return Verdict(True)

    def bounds() -> Bounds:  # as a meter gives them that does not count the wait
        return Bounds(deadline=time.monotonic() + (60 if answered.is_set() else 0.2))

    [turn] = talk(home, Playing(START_A, "started"), "start A", bounds=bounds, approve=slow)
    assert (turn.stop, turn.text) == (StopReason.FINISHED, "started")
    assert turn.calls[0].ok
    assert turn.calls[0].seconds < 0.4
    [result] = [event for event in events(home) if event["kind"] == "result"]
    assert result["seconds"] < 0.4


def test_an_interrupt_at_a_question_is_no_answer_to_it(home: Path) -> None:
    interrupted = asyncio.Event()

    async def interrupt(request: ApprovalRequest) -> Verdict:
        interrupted.set()
        return Verdict(False, "the person said no")

    [turn] = talk(home, Playing(START_A), "start A", interrupted=interrupted, approve=interrupt)
    assert (turn.stop, turn.refused) == (StopReason.INTERRUPTED, False)
    assert "interrupted" in turn.calls[0].result
    assert "said no" not in turn.calls[0].result


def test_trj_10_bytes_that_are_no_text_do_not_poison_the_conversation(home: Path, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\x97 and more")
    policy = Playing(calls(("read_text", {"path": str(tmp_path / "f")})), "odd", "fine")
    results = talk(home, policy, "cat f \udc97", "go on")
    assert [r.stop for r in results] == [StopReason.FINISHED] * 2
    for request in policy.requests:
        json.dumps(request, ensure_ascii=False).encode()
    session = list_sessions(home)[0].path
    session.read_text("utf-8")
    [result] = [m for m in open_session(home, "latest").history.messages() if m["role"] == "tool"]
    assert "\ufffd and more" in (result["content"] or "")


def test_the_draft_survives_the_process(home: Path) -> None:
    changes = {"grpo.steps": 7}
    edit = calls(("rl_edit_config", {"changes": changes}))
    first = Playing(calls(("rl_select_environment", {"name": "gsm8k-mini"})), edit, "ready")
    talk(home, first, "prepare", toolsets=("rl",), seed=5)
    second = Playing(calls(("rl_get_current_config", {})), "as it was")
    [result] = talk(home, second, "show", toolsets=("rl",))
    shown = json.loads(result.calls[0].result)
    assert (shown["changed"], shown["config"]["seed"]) == (changes, 5)


@pytest.mark.parametrize(("tool", "kept"), [("rl_start_training", "batch"), ("data_generate", "run_id")])
def test_what_the_session_began_is_not_trusted_after_a_start_that_was_cut_off(
    home: Path, tool: str, kept: str
) -> None:
    session = new_session(home, "a/b")
    session.record("state", state={"run_id": "old", "batch": "old", "seed": 1})
    session.record("message", message=user("train again"))
    message = {"role": "assistant", "content": None, "tool_calls": [_call(tool)]}
    session.record("message", message=message)
    assert talking(home, Playing(), session).state == {kept: "old", "seed": 1}
    session.close()


def test_a_script_goes_on_where_the_conversation_left_off(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    script.write_text("[{text: one}, {text: two, when: {contains: b}}, {text: three}]")
    assert [r.text for r in talk(home, ScriptedPolicy(script), "a", "b")] == ["one", "two"]
    [third, none_left] = talk(home, ScriptedPolicy(script), "c", "d")
    assert third.text == "three"
    assert none_left.stop is StopReason.ERROR
    assert "no reply left" in (none_left.reason or "")


def test_what_the_person_asked_for_is_summarised_also_for_scripts(home: Path, tmp_path: Path) -> None:
    script = tmp_path / "s.yaml"
    call = "{name: start, arguments: {name: A}}"
    script.write_text(f"[{{text: s, tool_calls: [{call}]}}, {{text: one}}, {{text: two}}, {{text: three}}]")

    async def main() -> None:
        helper = talking(home, ScriptedPolicy(script), new_session(home, "x"))
        assert await helper.compact() == "there is nothing to summarise yet"
        await helper.turn("a " * 2000)
        await helper.turn("b")
        told: list[str] = []
        helper.on_notice = told.append
        assert await helper.compact() == ""
        assert [line for line in told if "by the records" in line] == told[-1:]
        assert (await helper.turn("c")).text == "three"
        await helper.close()

    asyncio.run(main())
    summary, *rest = open_session(home, "latest").history.messages()
    assert 'start({"name": "A"}): done, run_id run-A' in (summary["content"] or "")
    assert [m["content"] for m in rest if m["role"] == "user"] == ["b", "c"]


def test_the_operator_understands_a_later_turn_of_a_resumed_conversation(home: Path) -> None:
    [first] = talk(home, OperatorPolicy(), "select tool-math", toolsets=("rl",))
    assert first.stop is StopReason.FINISHED
    [second] = talk(home, OperatorPolicy(), "show the config", toolsets=("rl",))
    assert "tool-math" in second.text


def test_the_operator_looks_before_it_starts_again_what_was_cut_off(home: Path) -> None:
    session = new_session(home, "builtin/operator")
    session.record("message", message=user("train gsm8k-mini"))
    message = {"role": "assistant", "content": "Starting.", "tool_calls": [_call("rl_start_training")]}
    session.record("message", message=message)
    session.close()
    [result] = talk(home, OperatorPolicy(), "train gsm8k-mini", toolsets=("rl",), approve=_no)
    assert [c.name for c in result.calls][:2] == ["rl_list_runs", "rl_list_environments"]


async def _no(request: Any) -> Any:
    from tools.dispatcher import Verdict

    return Verdict(request.spec.risk in ("read", "write"), "no")


def _call(name: str) -> dict[str, Any]:
    return {"id": "call_9", "type": "function", "function": {"name": name, "arguments": "{}"}}
