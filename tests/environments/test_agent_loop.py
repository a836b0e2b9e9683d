"""The loop with a scripted policy and the real dispatcher."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from environments.agent_loop import (
    AssistantMessage,
    Limits,
    LoopResult,
    Stop,
    StopReason,
    ToolFinished,
    ToolStarted,
    TurnStarted,
    run,
    unsent,
)
from environments.policies.base import Completion, FinishReason, PolicyError, Sampling, Usage
from environments.policies.scripted import ScriptedPolicy
from rl_cli.core.messages import Message, assistant, tool_call, user
from tools.dispatcher import ApprovalRequest, CallContext, Verdict, tool, tool_schemas

TOOLSETS = ("math", "loop-tests")
_running: list[str] = []
_started: list[str] = []


@tool(toolset="loop-tests")
async def slow_echo(text: str, seconds: float = 0.05) -> dict[str, Any]:
    """Waits and repeats."""
    _running.append(text)
    _started.append(text)
    try:
        before, alone = len(_started), len(_running) == 1
        await asyncio.sleep(seconds)
        return {"text": text, "alone": alone and len(_started) == before}
    finally:
        _running.remove(text)


@tool(toolset="loop-tests", exclusive=True)
async def exclusive_echo(text: str) -> dict[str, Any]:
    """Waits and repeats, alone."""
    return await slow_echo(text)


@tool(toolset="loop-tests")
async def wait_for_person(context: CallContext) -> dict[str, Any]:
    """Waits for the person at the keyboard, and ends by itself then."""
    assert context.interrupted is not None
    await context.interrupted.wait()
    return {"why": "interrupted"}


def context(**changes: Any) -> CallContext:
    return CallContext(**{"caller": "rollout", "task_id": "t", "toolsets": TOOLSETS, **changes})


def play(
    path: Path, replies: list[dict[str, Any]], ctx: CallContext | None = None, **options: Any
) -> LoopResult:
    script = path / "script.yaml"
    script.write_text(yaml.safe_dump(replies))

    async def main() -> LoopResult:
        policy = ScriptedPolicy(script)
        async with policy.open("r", tool_schemas(TOOLSETS), Sampling()) as session:
            return await run(session, [user("go")], ctx or context(), **options)

    return asyncio.run(main())


def calls(*pairs: tuple[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in pairs]}


def test_calls_of_a_turn_run_together_and_answer_in_order(tmp_path: Path) -> None:
    texts = ["a", "b", "c"]
    several = calls(*(("slow_echo", {"text": t, "seconds": 0.15 - 0.05 * i}) for i, t in enumerate(texts)))
    result = play(tmp_path, [several, {"text": "done"}])
    assert result.stop is StopReason.FINISHED
    assert result.final_text == "done"
    assert [json.loads(record.result)["text"] for record in result.calls] == texts
    assert not any(json.loads(record.result)["alone"] for record in result.calls)
    asked = [call["id"] for call in result.messages[1]["tool_calls"]]
    assert [m["tool_call_id"] for m in result.messages[2:5]] == asked
    assert result.usage.requests == 2


def test_an_exclusive_call_runs_alone(tmp_path: Path) -> None:
    mixed = calls(
        ("slow_echo", {"text": "a"}), ("exclusive_echo", {"text": "b"}), ("exclusive_echo", {"text": "c"})
    )
    result = play(tmp_path, [mixed, {"text": "done"}])
    assert [json.loads(r.result)["text"] for r in result.calls] == ["a", "b", "c"]
    assert all(json.loads(r.result)["alone"] for r in result.calls)


def test_mistaken_calls_are_told_so_and_the_loop_goes_on(tmp_path: Path) -> None:
    wrong = calls(
        ("calculatr", {"expression": "1+1"}), ("calculator", {"expr": "1"}), ("calculator", "{not json")
    )
    right = calls(("calculator", {"expression": "2 * 3"}))
    result = play(tmp_path, [wrong, right, {"text": "{{ calculator.result }}"}])
    assert [r.error_type for r in result.calls] == [
        "unknown_tool",
        "invalid_arguments",
        "invalid_arguments",
        None,
    ]
    assert "calculator" in result.calls[0].result  # the nearest name
    assert result.final_text == "6"


def test_a_rollout_cannot_call_what_it_was_not_offered(tmp_path: Path) -> None:
    result = play(tmp_path, [calls(("rl_list_runs", {})), {"text": "ok"}])
    assert result.calls[0].error_type == "unknown_tool"


def test_max_turns_runs_the_last_calls_and_answers_them(tmp_path: Path) -> None:
    again = {**calls(("calculator", {"expression": "1 + 1"})), "repeat": True}
    result = play(tmp_path, [again], limits=Limits(max_turns=3))
    assert result.stop is StopReason.MAX_TURNS
    assert len(result.calls) == 3
    assert result.messages[-1]["role"] == "tool"
    assert [r.turn for r in result.calls] == [0, 1, 2]


def test_a_deadline_ends_a_tool_and_then_the_run(tmp_path: Path) -> None:
    slow = calls(("slow_echo", {"text": "a", "seconds": 60}))
    limits = Limits(deadline=time.monotonic() + 0.1)
    result = play(tmp_path, [slow, {"text": "never"}], limits=limits)
    assert result.stop is StopReason.DEADLINE
    assert result.calls[0].error_type == "timeout"
    assert not _running


def test_an_interruption_lets_a_tool_end_by_itself(tmp_path: Path) -> None:
    async def main() -> LoopResult:
        pressed = asyncio.Event()
        script = tmp_path / "script.yaml"
        script.write_text(yaml.safe_dump([calls(("wait_for_person", {})), {"text": "after"}]))
        async with ScriptedPolicy(script).open("r", [], Sampling()) as session:
            asyncio.get_running_loop().call_later(0.05, pressed.set)
            first = await run(session, [user("go")], context(caller="chat", interrupted=pressed))
            assert first.stop is StopReason.INTERRUPTED
            assert json.loads(first.calls[0].result) == {"ok": True, "why": "interrupted"}
            rest = [*unsent(first.messages), user("and now?")]
            assert [m["role"] for m in rest] == ["tool", "user"]
            return await run(session, rest, context(caller="chat"))

    assert asyncio.run(main()).final_text == "after"


def test_an_interruption_cancels_a_tool_that_does_not_listen(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("environments.tool_calls.INTERRUPT_GRACE", 0.05)
    script = tmp_path / "script.yaml"
    two = calls(("slow_echo", {"text": "a", "seconds": 60}), ("exclusive_echo", {"text": "b"}))
    script.write_text(yaml.safe_dump([two]))

    async def main() -> LoopResult:
        pressed = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, pressed.set)
        async with ScriptedPolicy(script).open("r", [], Sampling()) as session:
            return await run(session, [user("go")], context(interrupted=pressed))

    result = asyncio.run(main())
    assert result.stop is StopReason.INTERRUPTED
    assert [r.error_type for r in result.calls] == ["interrupted", "interrupted"]
    assert not _running


@pytest.mark.parametrize("name", ["slow_echo", "exclusive_echo"])
def test_one_interruption_at_a_question_answers_all_calls_of_the_turn_as_not_run(
    tmp_path: Path, name: str
) -> None:
    script = tmp_path / "script.yaml"
    thirty = calls(*((name, {"text": str(n)}) for n in range(30)))
    script.write_text(yaml.safe_dump([thirty, {"text": "never said"}]))
    asked: list[str] = []
    pressed, one_at_a_time = asyncio.Event(), asyncio.Lock()

    async def ask(request: ApprovalRequest) -> Verdict:
        async with one_at_a_time:
            if not pressed.is_set():
                asked.append(request.arguments["text"])
                asyncio.get_running_loop().call_soon(pressed.set)
                await pressed.wait()
            return Verdict(False, "no answer")

    async def main() -> LoopResult:
        async with ScriptedPolicy(script).open("r", [], Sampling()) as session:
            return await run(session, [user("go")], context(caller="chat", approve=ask, interrupted=pressed))

    _started.clear()
    result = asyncio.run(main())
    assert result.stop is StopReason.INTERRUPTED
    assert asked == ["0"]
    assert _started == []
    assert [r.error_type for r in result.calls] == ["interrupted"] * 30
    assert all("not run" in r.result for r in result.calls)


class Replies:
    """A session that plays completions, or raises or waits for ever."""

    def __init__(self, *replies: Completion | Exception | None) -> None:
        self.replies = list(replies)
        self.given: list[list[Message]] = []

    async def complete(self, new_messages: list[Message]) -> Completion:
        self.given.append(new_messages)
        reply = self.replies.pop(0)
        if reply is None:
            await asyncio.Event().wait()
        if isinstance(reply, Exception):
            raise reply
        assert reply is not None
        return reply


ADD = tool_call("c1", "calculator", '{"expression": "1 + 1"}')


def completion(finish: FinishReason, *tool_calls: Any) -> Completion:
    return Completion(assistant("text", list(tool_calls)), finish, Usage(10, 5, 0, 1))


def test_a_policy_that_fails_is_a_stop_reason() -> None:
    session = Replies(completion(FinishReason.TOOL_CALLS, ADD), PolicyError("engine dead"))
    result = asyncio.run(run(session, [user("go")], context()))
    assert (result.stop, result.error) == (StopReason.ERROR, "engine dead")
    assert result.usage == Usage(10, 5, 0, 1)
    assert result.messages[-1]["role"] == "tool"


def test_a_reply_that_was_cut_runs_no_call_and_leaves_none_unanswered() -> None:
    result = asyncio.run(run(Replies(completion(FinishReason.LENGTH, ADD)), [user("go")], context()))
    assert result.stop is StopReason.TOKEN_LIMIT
    assert result.calls == []
    assert json.loads(result.messages[-1]["content"] or "")["error"]["type"] == "not_run"


def test_a_filtered_reply_is_an_error() -> None:
    result = asyncio.run(run(Replies(completion(FinishReason.CONTENT_FILTER)), [user("go")], context()))
    assert result.stop is StopReason.ERROR


def test_the_tokens_of_the_whole_run_are_bounded() -> None:
    session = Replies(*[completion(FinishReason.TOOL_CALLS, ADD)] * 3)
    result = asyncio.run(run(session, [user("go")], context(), Limits(max_tokens=10)))
    assert result.stop is StopReason.TOKEN_LIMIT
    assert result.usage.output_tokens == 10


def test_deadline_and_interruption_end_a_request_that_hangs() -> None:
    limits = Limits(deadline=time.monotonic() + 0.05)
    assert asyncio.run(run(Replies(None), [user("go")], context(), limits)).stop is StopReason.DEADLINE

    async def interrupted() -> LoopResult:
        pressed = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, pressed.set)
        return await run(Replies(None), [user("go")], context(interrupted=pressed))

    assert asyncio.run(interrupted()).stop is StopReason.INTERRUPTED


def test_before_request_sees_everything_and_can_end_the_run() -> None:
    seen: list[int] = []

    async def budget(messages: list[Message]) -> Stop | None:
        seen.append(len(messages))
        return Stop(StopReason.BUDGET, "no money is left") if len(messages) > 1 else None

    session = Replies(completion(FinishReason.TOOL_CALLS, ADD))
    result = asyncio.run(run(session, [user("go")], context(), before_request=budget))
    assert (result.stop, result.error) == (StopReason.BUDGET, "no money is left")
    assert seen == [1, 3]


def test_a_session_is_given_each_message_once_and_events_tell_the_story() -> None:
    session = Replies(completion(FinishReason.TOOL_CALLS, ADD), completion(FinishReason.STOP))
    events: list[Any] = []
    result = asyncio.run(run(session, [user("go")], context(), on_event=events.append))
    assert [m["role"] for given in session.given for m in given] == ["user", "tool"]
    kinds = [TurnStarted, AssistantMessage, ToolStarted, ToolFinished, TurnStarted, AssistantMessage]
    assert [type(event) for event in events] == kinds
    assert [m["role"] for m in result.messages] == ["user", "assistant", "tool", "assistant"]
