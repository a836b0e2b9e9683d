"""Turns that lead nowhere end after a few tries, with a clear reason."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from environments.agent_loop import CallRecord, StopReason
from environments.policies.base import Completion, FinishReason, Usage
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy
from rl_cli.agent.guards import in_a_circle, still_refused
from rl_cli.core.messages import assistant, tool_call
from tests.agent.talk import Playing, calls, check_well_formed, events, talk
from tests.wire.server import Reply, WireServer


def record(name: str, arguments: str = "{}", ok: bool = True, result: str = "") -> CallRecord:
    text = result or ('{"ok": true}' if ok else '{"ok": false, "error": {"message": "no such file"}}')
    return CallRecord("c", name, arguments, text, ok, 0.1, -1, None if ok else "failed")


def one_a_turn(records: list[CallRecord]) -> list[CallRecord]:
    return [replace(r, turn=i) if r.turn < 0 else r for i, r in enumerate(records)]


def waited(why: str, run: int = 0, decision: int = 0) -> CallRecord:
    arguments = json.dumps({"wait": True, "decision": f"it goes on {decision}"})
    return record("rl_check_status", arguments, result=json.dumps({"why": why, "run": {"id": f"run-{run}"}}))


def unknown(number: int) -> CallRecord:
    return replace(record(f"tool_{number}", ok=False), error_type="unknown_tool")


FAILED = record("read", '{"path": "a"}', ok=False)


@pytest.mark.parametrize(
    ("records", "stops"),
    [
        ([], False),
        ([FAILED] * 2, False),
        ([FAILED] * 3, True),
        ([FAILED, record("read", '{ "path":"a" }', ok=False, result='{"error": "x"}'), FAILED], True),
        ([FAILED, FAILED, record("look"), FAILED], False),
        ([FAILED, FAILED, record("read", '{"path": "b"}', ok=False)], False),
        ([record("look")] * 3, False),
        ([record("look")] * 4, True),
        ([record("look", result=f'{{"n": {n}}}') for n in range(9)], False),
        ([waited("due")] * 9, False),
        ([waited("alert")] * 9, False),
        ([waited("end")] * 3, False),
        ([waited("end")] * 4, True),
        ([waited("end", decision=n) for n in range(4)], True),
        ([waited("end", run=n) for n in range(9)], False),
        ([unknown(n) for n in range(7)], False),
        ([unknown(n) for n in range(8)], True),
        ([unknown(n) for n in range(7)] + [record("look")], False),
        ([replace(unknown(n), turn=n // 10) for n in range(20)], False),
        ([replace(unknown(n), turn=n // 10) for n in range(21)], True),
        ([record("read", f'{{"path": {n}}}', ok=False) for n in range(11)], False),
        ([record("read", f'{{"path": {n}}}', ok=False) for n in range(12)], True),
        ([record("rl_check_status", '{"wait": false}')] * 4, True),
        ([record("rl_check_status", '{"wait": true}', ok=False)] * 3, True),
        ([record("look", "[not json")] * 4, True),
        ([record("look"), record("list")] * 3, False),
        ([record("look"), record("list")] * 4, True),
        ([FAILED, record("list"), record("look")] * 4, True),
        ([record("look", result=f'{{"n": {n // 2}}}') for n in range(16)], False),
        ([replace(record("look"), turn=0)] * 16, False),
        ([replace(FAILED, turn=0)] * 16, False),
    ],
)
def test_a_call_that_changes_nothing_is_not_repeated_for_ever(records: list[CallRecord], stops: bool) -> None:
    stop = in_a_circle(one_a_turn(records))
    assert (stop is not None) is stops
    if stop:
        assert stop.reason is StopReason.STUCK
        assert records[-1].name in (stop.why or "")
        assert (stop.why or "").startswith("the turn was ended")
        assert "say what to do differently" in (stop.why or "")


def test_the_same_failing_call_ends_the_turn_and_the_next_turn_begins_anew(home: Path) -> None:
    failing = calls(("broken", {"what": "a.txt"}))
    policy = Playing(failing, failing, failing, failing, "never said")
    [result] = talk(home, policy, "read it")
    assert result.stop is StopReason.STUCK
    assert "3 times in a row" in (result.reason or "")
    assert "there is no a.txt" in (result.reason or "")
    assert len(policy.requests) == 3
    [result] = talk(home, Playing(failing, "I give up"), "again")
    assert (result.stop, result.text) == (StopReason.FINISHED, "I give up")


def test_empty_replies_are_asked_again_twice(home: Path) -> None:
    policy = Playing("", " \n", "here I am")
    [result] = talk(home, policy, "hello")
    assert (result.stop, result.text) == (StopReason.FINISHED, "here I am")
    assert [len(request) for request in policy.requests] == [2, 2, 2]  # nothing empty is sent back
    policy = Playing("", "", "", "never said")
    [result] = talk(home, policy, "hello?")
    assert (result.stop, result.reason) == (
        StopReason.STUCK,
        "the turn was ended: the model answered nothing, 3 times",
    )
    assert [e["message"]["content"] for e in events(home) if e["kind"] == "message"] == [
        "hello",
        "here I am",
        "hello?",
    ]


@pytest.mark.parametrize("kept", [True, False])
def test_agt_08_replies_that_are_always_cut_end_the_turn_with_a_clear_reason(home: Path, kept: bool) -> None:
    half = [tool_call("c", "start", '{"name": "A')] if kept else None
    errors = [] if kept else ["the arguments of start were cut off"]
    cut = Completion(assistant("I start", half), FinishReason.LENGTH, Usage(requests=1), call_errors=errors)
    policy = Playing(*[cut] * 9)
    [result] = talk(home, policy, "start A")
    assert len(policy.requests) == 3
    assert result.stop is StopReason.TOKEN_LIMIT
    assert "3 replies of the model ended before they were complete" in (result.reason or "")
    assert "max_output_tokens" in (result.reason or "")
    assert result.calls == []
    for request in policy.requests:
        check_well_formed(request[1:])
    assert "ended before it was complete" in (policy.requests[1][-1]["content"] or "")


def test_a_call_in_text_that_cannot_be_read_is_told_to_the_model_with_its_place_and_the_reason(
    home: Path,
) -> None:
    broken = 'I look: <tool_call>{"name": "status", "arguments": {"name": }}</tool_call>'
    mended = broken.replace('"name": }', '"name": "A"}')
    with WireServer([Reply(broken), Reply(mended), Reply("It runs.")]) as server:
        policy = OpenAIChatPolicy(Endpoint("local", "my-fine-tune", server.openai_url, "k"))
        [result] = talk(home, policy, "look")
        told = server.requests[1].body["messages"][-1]["content"]
    assert "at character 8: the JSON has something that is no value" in told
    assert (result.stop, result.text, [c.name for c in result.calls]) == (
        StopReason.FINISHED,
        "It runs.",
        ["status"],
    )


def test_an_answer_that_speaks_of_a_mark_is_an_answer(home: Path) -> None:
    text = "Calls stand between `<tool_call>` and `</tool_call>`."
    with WireServer([Reply(text)]) as server:
        policy = OpenAIChatPolicy(Endpoint("local", "my-fine-tune", server.openai_url, "k"))
        [result] = talk(home, policy, "how do I call a tool?")
        assert len(server.requests) == 1
    assert (result.stop, result.text) == (StopReason.FINISHED, text)


def test_a_text_that_was_cut_is_kept_and_said_to_be_cut(home: Path) -> None:
    cut = Completion(assistant("a long sto"), FinishReason.LENGTH, Usage())
    [result] = talk(home, Playing(cut), "tell me")
    assert (result.stop, result.text) == (StopReason.TOKEN_LIMIT, "a long sto")
    assert "say 'go on'" in (result.reason or "")


def test_runaway_turns_end(home: Path) -> None:
    policy = Playing(*[calls(("status", {"name": str(n)})) for n in range(300)])
    [result] = talk(home, policy, "look")
    assert result.stop is StopReason.MAX_TURNS
    assert "too many requests" in (result.reason or "")
    assert len(policy.requests) == 200


def test_a_refusal_counts_until_a_call_of_that_tool_is_allowed() -> None:
    refused = replace(record("start", ok=False), error_type="refused")
    assert still_refused([record("look"), refused, record("look")])
    assert still_refused([record("start"), refused])
    assert not still_refused([refused, record("start", '{"seed": 5}')])
    assert not still_refused([])
