"""Calls that block a thread, as those do that read a mount which is gone."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rl_cli.monitoring.bounded_calls import BoundedCalls


def test_sch_06_what_does_not_answer_is_waited_for_a_bounded_time_and_holds_one_thread() -> None:
    free, begun = threading.Event(), list[str]()

    def hangs() -> str:
        begun.append("hangs")
        free.wait()
        return "late"

    async def asked() -> None:
        calls = BoundedCalls()
        for _ in range(3):
            with pytest.raises(TimeoutError, match="a run has not answered"):
                await calls.answer("a run", hangs, 0.05)
            assert await calls.answer("another", lambda: "at once", 30) == "at once"
        assert (begun, calls.unanswered) == (["hangs"], ["a run"])
        free.set()
        assert await calls.answer("a run", hangs, 30) == "late"
        assert calls.unanswered == []

    asyncio.run(asked())
