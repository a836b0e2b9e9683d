"""How many requests go out at once."""

from __future__ import annotations

import asyncio
import time

from rl_cli.data.generation.limiter import RequestLimit


async def _most_at_once(limit: RequestLimit, count: int) -> int:
    busy = most = 0

    async def one() -> None:
        nonlocal busy, most
        async with limit.request():
            busy += 1
            most = max(most, busy)
            await asyncio.sleep(0.001)
            busy -= 1

    await asyncio.gather(*(one() for _ in range(count)))
    return most


def test_no_more_go_out_than_allowed_and_all_come_to_their_turn() -> None:
    assert asyncio.run(_most_at_once(RequestLimit(5), 40)) == 5


def test_a_throttled_request_halves_the_limit_once_a_round() -> None:
    async def main() -> list[int]:
        limit, sent = RequestLimit(16), time.monotonic()
        seen = []
        for _ in range(3):  # of the same round
            limit.throttled(sent, 0.0)
            seen.append(limit.allowed)
        limit.throttled(time.monotonic(), 0.0)
        return [*seen, limit.allowed, await _most_at_once(limit, 20)]

    assert asyncio.run(main()) == [8, 8, 8, 4, 4]


def test_answers_let_more_out_up_to_the_bound() -> None:
    limit = RequestLimit(4)
    limit.throttled(time.monotonic(), 0.0)
    limit.throttled(time.monotonic(), 0.0)
    assert limit.allowed == 1
    for _ in range(200):
        limit.answered()
    assert limit.allowed == 4


def test_nothing_goes_out_before_the_time_that_the_server_names() -> None:
    async def main() -> float:
        limit = RequestLimit(4)
        limit.throttled(time.monotonic(), 0.1)
        began = time.monotonic()
        await _most_at_once(limit, 2)
        return time.monotonic() - began

    assert asyncio.run(main()) >= 0.1


def test_who_is_cancelled_while_waiting_takes_nobodys_turn() -> None:
    async def main() -> bool:
        limit = RequestLimit(1)
        async with limit.request():
            waiting = [asyncio.create_task(_most_at_once(limit, 1)) for _ in range(3)]
            await asyncio.sleep(0.01)
            waiting[0].cancel()
        limit.answered()
        done, _ = await asyncio.wait(waiting[1:], timeout=5)
        return len(done) == 2

    assert asyncio.run(main())
