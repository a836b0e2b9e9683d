from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest

from tests.tools import sample_tools
from tests.tools.calls import call, context, error
from tools import dispatcher
from tools.dispatcher import ApprovalRequest, CallContext, Verdict, handle_function_call


@pytest.fixture(autouse=True)
def _nothing_ended_yet() -> None:
    sample_tools.ENDED.clear()


def test_a_tool_sees_its_caller_and_shares_the_state() -> None:
    given = context("reward")
    assert call("whoami", given=given)["task_id"] == "t-1"
    call("whoami", given=given)
    assert given.state == {"seen": 2}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("none", {"ok": True}),
        ("number", {"ok": True, "result": 7}),
        ("nan", {"ok": True, "loss": "NaN", "worst": "-Infinity"}),
        ("surrogate", {"ok": True, "text": "a\ufffd", "pair": "😀"}),
        ("bytes", {"ok": True, "result": "\ufffd"}),
        ("model", {"ok": True, "x": 1, "y": 0}),
        ("failure", {"ok": False, "error": {"type": "mine", "message": "no"}}),
        ("failure_text", {"ok": False, "error": {"type": "failed", "message": "no"}}),
        ("failure_bare", {"ok": False, "error": {"type": "failed", "message": '{"why": "no"}'}}),
        ("keys", {"ok": True, "[1, 2]": {"3": "x"}}),
    ],
)
def test_whatever_a_tool_returns_becomes_a_result(kind: str, expected: dict[str, Any]) -> None:
    assert call("give", {"kind": kind}) == expected


@pytest.mark.parametrize("kind", ["self", "deep"])
def test_a_result_that_cannot_be_written_is_an_error(kind: str) -> None:
    assert error("give", {"kind": kind})[0] == "internal_error"


@pytest.mark.parametrize(
    ("kind", "type", "words"),
    [
        ("tool", "no_such_file", "there is no a.txt | try b.txt"),
        ("usage", "bad_usage", "unknown run 'x' | known: y"),
        ("work", "failed", "the disk is full"),
        ("refused", "refused", "over the budget"),
        ("bug", "internal_error", "KeyError: 'x'"),
        ("nameless", "internal_error", "Nameless"),
        ("exit", "internal_error", "SystemExit"),
        ("interrupt", "internal_error", "KeyboardInterrupt"),
        ("stop", "internal_error", "StopIteration"),
        ("extra", "bad_usage", "pip install 'rl-flywheel[train]'"),
    ],
)
def test_whatever_a_tool_raises_becomes_an_error(kind: str, type: str, words: str) -> None:
    assert error("fail", {"kind": kind})[0] == type
    assert words in error("fail", {"kind": kind})[1]


@pytest.mark.parametrize(
    ("kind", "type"), [("exit", "internal_error"), ("cancelled", "cancelled"), ("", "internal_error")]
)
def test_an_async_tool_cannot_end_the_event_loop(kind: str, type: str) -> None:
    assert error("fail_async", {"kind": kind}, result_limit=2000)[0] == type


@pytest.mark.parametrize("name", ["sleep", "block", "hang", "cling", "wait_a_little"])
def test_a_call_past_its_deadline_is_told_and_answered(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatcher, "CLEANUP_SECONDS", 0.1)
    started = time.monotonic()
    kind, text = error(name, {"seconds": 1.5 if name in ("hang", "cling") else 60}, call_timeout=0.1)
    assert (kind, time.monotonic() - started < 30) == ("timeout", True)
    assert "did not finish within 0.1 seconds" in text
    deadline = time.monotonic() + 60
    while name in ("sleep", "block") and name not in sample_tools.ENDED:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_deadline_of_the_session_bounds_every_call() -> None:
    assert error("wait_on", {"seconds": 60}, deadline=time.monotonic() + 0.1)[0] == "timeout"
    assert "no time was left" in error("echo", {"text": "x"}, deadline=time.monotonic() - 1)[1]


def test_a_waiting_tool_is_not_bound_by_the_usual_timeout() -> None:
    assert call("wait_on", {"seconds": 0.2}, call_timeout=0.01)["ok"]


def test_waiting_for_an_approval_does_not_count() -> None:
    async def slowly(request: ApprovalRequest) -> Verdict:
        await asyncio.sleep(0.3)
        return Verdict(True)

    assert call("execute_it", approve=slowly, call_timeout=0.2)["ok"]


def test_cancelling_a_call_ends_what_it_started() -> None:
    async def main() -> None:
        for name in ("sleep", "block"):
            task = asyncio.create_task(handle_function_call(name, {"seconds": 60}, context()))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        deadline = time.monotonic() + 60
        while len(sample_tools.ENDED) < 2:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)

    asyncio.run(main())


def test_sync_tools_neither_block_the_loop_nor_starve_when_many_hang() -> None:
    async def main() -> int:
        hung = [handle_function_call("hang", {"seconds": 2}, context(call_timeout=0.05)) for _ in range(80)]
        assert all(json.loads(text)["error"]["type"] == "timeout" for text in await asyncio.gather(*hung))
        many = [handle_function_call("echo", {"text": "x"}, context()) for _ in range(300)]
        return sum(json.loads(text)["ok"] for text in await asyncio.gather(*many))

    assert asyncio.run(main()) == 300
    assert sum(thread.name == "tool" for thread in threading.enumerate()) <= 150


def test_a_hung_sync_tool_does_not_keep_the_process_from_ending() -> None:
    import subprocess
    import sys

    code = (
        "import asyncio; from tests.tools.calls import *; "
        "print(error('hang', {'seconds': 300}, call_timeout=0.1)[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "timeout")


Approved = tuple[list[tuple[str, dict[str, Any]]], CallContext]


def asked(verdict: Verdict, **fields: Any) -> Approved:
    """A context that answers every question with `verdict`, and the questions."""
    questions: list[tuple[str, dict[str, Any]]] = []

    async def approve(request: ApprovalRequest) -> Verdict:
        questions.append((request.spec.name, request.arguments))
        return verdict

    return questions, context(approve=approve, **fields)


@pytest.mark.parametrize("name", ["read_it", "write_it", "execute_it", "spend_it"])
def test_a_call_is_asked_for_with_its_arguments(name: str) -> None:
    questions, given = asked(Verdict(True))
    assert call(name, {"what": "x"}, given=given)["ok"]
    assert questions == [(name, {"what": "x"})]
    questions, given = asked(Verdict(False, "not today"))
    assert "not today" in error(name, {"what": "x"}, given=given)[1]


def test_wrong_calls_are_not_asked_for() -> None:
    questions, given = asked(Verdict(False))
    assert error("execute_it", {"waht": "x"}, given=given)[0] == "invalid_arguments"
    assert questions == []


def test_an_approver_that_breaks_allows_nothing() -> None:
    async def broken(request: ApprovalRequest) -> Verdict:
        raise EOFError

    assert error("execute_it", approve=broken)[0] == "internal_error"


@pytest.mark.parametrize(
    ("caller", "allowed"),
    [
        ("rollout", {"write_it", "execute_it", "spend_it"}),
        ("reward", {"write_it", "execute_it", "spend_it"}),
        ("batch", {"write_it", "execute_it", "spend_it"}),
        ("chat", {"write_it"}),
        ("cli", {"write_it"}),
        ("mcp", {"write_it"}),
    ],
)
def test_without_an_approver_only_sandboxed_callers_may_execute(caller: Any, allowed: set[str]) -> None:
    names = ("write_it", "execute_it", "spend_it")
    assert {name for name in names if call(name, caller=caller)["ok"]} == allowed
    assert error("rl_start_training", caller="batch", toolsets=("rl",))[0] == "refused"
