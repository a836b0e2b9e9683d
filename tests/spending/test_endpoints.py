from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from environments.policies.base import Bounds, BudgetExhausted, PolicyError, Sampling
from environments.policies.endpoints.attempts import WaitPolicy
from environments.policies.endpoints.endpoint import Endpoint
from environments.policies.openai.chat import OpenAIChatPolicy
from rl_cli.core.messages import user
from rl_cli.spending.ledger import Ledger
from rl_cli.spending.limits import Limits
from rl_cli.spending.meter import SessionMeter
from rl_cli.spending.metered import metered
from tests.spending.kit import cents, totals
from tests.wire.refusals import openai_server_error
from tests.wire.server import Reply, WireServer

QUICK = WaitPolicy(base=0.01, cap=0.01)


def ask(home: Path, server: WireServer, limits: Limits | None = None, times: int = 1) -> float:
    """Dollars that the requests of one session took."""
    endpoint = Endpoint("x", "y", server.openai_url, max_output_tokens=50)
    policy = OpenAIChatPolicy(endpoint, QUICK)
    bounds = Bounds(SessionMeter(Ledger(home), limits or Limits(), "s", cents))

    async def go() -> float:
        dollars = 0.0
        async with policy.open("r", [], Sampling(), None, bounds) as session:
            for _ in range(times):
                dollars += (await session.complete([user("hello")])).usage.dollars
        return dollars

    return asyncio.run(go())


def test_every_attempt_is_paid_for_and_what_was_refused_is_not(home: Path) -> None:
    with WireServer([openai_server_error(), Reply("hello back")]) as server:
        dollars = ask(home, server)
    found = totals(home)
    assert dollars > 0
    assert found.spent.dollars >= dollars
    assert found.reserved.dollars == 0
    with Ledger(home).reading() as books:
        states = [row[0] for row in books.db.execute("SELECT state FROM entries ORDER BY time")]
    assert len(states) == 2  # both attempts stand in the books


def test_a_budget_ends_the_conversation_before_the_request_that_may_exceed_it(home: Path) -> None:
    with WireServer([Reply("hello")] * 20) as server, pytest.raises(BudgetExhausted):
        ask(home, server, Limits(session={"dollars": 1.2}), times=20)
    assert 0 < len(server.requests) < 20
    assert totals(home).spent.dollars <= 1.2
    assert totals(home).reserved.dollars == 0


def test_a_policy_without_bounds_is_metered_by_its_address(home: Path) -> None:
    with WireServer([Reply("hello")]) as server:
        policy = metered(OpenAIChatPolicy(Endpoint("x", "y", server.openai_url), QUICK), home, "test")

        async def go() -> None:
            async with policy.open("r", [], Sampling()) as session:
                await session.complete([user("hello")])

        asyncio.run(go())
    spent = totals(home, "session", "test").spent
    assert (spent.dollars, spent.tokens > 0) == (0.0, True)  # a loopback address


def test_nothing_is_sent_while_the_books_are_closed(home: Path) -> None:
    home.mkdir()
    (home / "spending.db").write_bytes(b"x" * 4096)
    with WireServer([Reply("hello")]) as server, pytest.raises(PolicyError, match="damaged"):
        ask(home, server)
    assert server.requests == []
