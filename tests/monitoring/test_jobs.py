"""Jobs of which one raises, hangs or ends do not stop the others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from rl_cli.monitoring.jobs import Beat, Jobs

Work = Callable[[str, Beat], Awaitable[None]]


async def tick(beat: Beat, done: Callable[[], None]) -> None:
    while True:
        beat()
        done()
        await asyncio.sleep(0.01)


def ticks_beside(bad: Callable[[Beat], Awaitable[None]], **limits: float) -> tuple[Counter[str], list[str]]:
    """What happens until the bad job was begun anew and a second one has gone on meanwhile."""
    seen: Counter[str] = Counter()
    told: list[str] = []

    async def work(name: str, beat: Beat) -> None:
        if name == "bad":
            seen["begun"] += 1
            await bad(beat)
        else:
            await tick(beat, lambda: seen.update(["ticks"]))

    async def main() -> None:
        jobs = Jobs(work, lambda name, trouble: told.append(f"{name}: {trouble}"), **limits)
        end = time.monotonic() + 60
        while (seen["begun"] < 2 or seen["ticks"] < 5) and time.monotonic() < end:
            jobs.keep(["bad", "good"])
            await asyncio.sleep(0.02)
        await jobs.close()

    asyncio.run(main())
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
