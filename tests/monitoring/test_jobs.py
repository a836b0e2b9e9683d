"""Jobs of which one raises, hangs or ends do not stop the others."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from rl_cli.monitoring.bounded_calls import BoundedCalls
from rl_cli.monitoring.jobs import Beat, Jobs

Work = Callable[[str, Beat], Awaitable[None]]


async def tick(beat: Beat, done: Callable[[], None]) -> None:
    while True:
        beat()
        done()
        await asyncio.sleep(0.01)


def ticks_beside(bad: Callable[[Beat], Awaitable[None]], **limits: float) -> tuple[Counter[str], list[str]]:
    return asyncio.run(ticking(bad, **limits))


async def ticking(bad: Callable[[Beat], Awaitable[None]], **limits: float) -> tuple[Counter[str], list[str]]:
    """What happens until the bad job was begun anew and a second one has gone on meanwhile."""
    seen: Counter[str] = Counter()
    told: list[str] = []

    async def work(name: str, beat: Beat) -> None:
        if name == "bad":
            seen["begun"] += 1
            await bad(beat)
        else:
            await tick(beat, lambda: seen.update(["ticks"]))

    jobs = Jobs(work, lambda name, trouble: told.append(f"{name}: {trouble}"), **limits)
    end = time.monotonic() + 60
    while (seen["begun"] < 2 or seen["ticks"] < 5) and time.monotonic() < end:
        jobs.keep(["bad", "good"])
        await asyncio.sleep(0.02)
    await jobs.close()
    return seen, told


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()]
)
def test_sch_06_a_job_that_raises_anything_is_begun_anew_and_the_others_go_on(error: BaseException) -> None:
    async def bad(beat: Beat) -> None:
        raise error

    seen, told = ticks_beside(bad, again_seconds=0.1)
    assert (seen["begun"], seen["ticks"] >= 5) == (2, True)
    assert told[0].startswith(f"bad: {type(error).__name__}")


def test_sch_06_a_job_that_hangs_for_an_hour_is_begun_anew_and_the_others_go_on() -> None:
    async def hang(beat: Beat) -> None:
        beat()
        await asyncio.sleep(3600)

    async def hang_on(beat: Beat) -> None:
        """Not even to be cancelled."""
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if time.monotonic() > end:
                    raise

    end = time.monotonic() + 0.4
    for bad in (hang, hang_on):
        seen, told = ticks_beside(bad, hung_seconds=0.15)
        assert (seen["begun"], seen["ticks"] >= 5) == (2, True)
        assert "no sign of life" in told[0]


def test_sch_06_a_job_that_blocks_a_thread_for_an_hour_holds_up_nobody() -> None:
    """It cannot be cancelled; the others go on, and the end waits for it only here."""
    go_on = threading.Event()

    async def block(beat: Beat) -> None:
        beat()
        await asyncio.to_thread(go_on.wait, 3600)

    async def main() -> tuple[Counter[str], list[str]]:
        try:
            return await ticking(block, hung_seconds=0.15)
        finally:
            go_on.set()

    seen, told = asyncio.run(main())
    assert (seen["begun"], seen["ticks"] >= 5) == (2, True)
    assert "no sign of life" in told[0]


def test_sch_06_a_call_that_never_returns_is_made_once_and_told_each_time() -> None:
    go_on, made = threading.Event(), Counter[str]()

    def hang() -> str:
        made.update(["hang"])
        go_on.wait(3600)
        return "late"

    async def main() -> None:
        calls = BoundedCalls()
        for _ in range(3):
            with pytest.raises(TimeoutError, match="a run has not answered"):
                await calls.answer("a run", hang, 0.05)
            assert await calls.answer("another", lambda: "at once", 60) == "at once"
            assert calls.unanswered == ["a run"]
        go_on.set()
        assert await calls.answer("a run", hang, 60) == "late"
        assert (calls.unanswered, made["hang"]) == ([], 1)

    asyncio.run(main())


def test_a_job_that_has_ended_is_begun_again_only_if_it_is_wanted_again() -> None:
    begun: list[str] = []

    async def work(name: str, beat: Beat) -> None:
        begun.append(name)

    async def main() -> None:
        jobs = Jobs(work)
        for wanted in (["a"], [], ["b"], ["b", "a"]):
            jobs.keep(wanted)
            await asyncio.sleep(0.01)
        await jobs.close()

    asyncio.run(main())
    assert begun[:2] == ["a", "b"]
    assert sorted(begun[2:]) == ["a", "b"]
