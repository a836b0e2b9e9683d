"""The meter of a batch: many requests under one entry of the ledger."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.policies.base import BudgetExhausted, Usage
from rl_cli.spending.batch_meter import BatchMeter, Share
from rl_cli.spending.ledger import Ledger, Totals
from rl_cli.spending.limits import Limits
from rl_cli.spending.overview import overview
from rl_cli.spending.units import Amounts


def price(model: str, usage: Usage) -> float | None:
    return (usage.input_tokens + 5 * usage.output_tokens) / 1000


def meter_in(home: Path, **limits: float) -> BatchMeter:
    return BatchMeter(Ledger(home), Limits(session=limits), "batch-b", price)


def totals(home: Path) -> Totals:
    with Ledger(home).reading() as books:
        return books.totals("session", "batch-b")


def test_what_requests_took_is_written_at_a_flush_and_at_the_end(tmp_path: Path) -> None:
    meter = meter_in(tmp_path)
    first, second = (meter.reserve("m", 100, 100) for _ in range(2))
    assert first.settle(Usage(100, 10)) == pytest.approx(0.15)
    assert meter.spent().dollars == pytest.approx(0.15)
    meter.flush()
    assert totals(tmp_path).spent == Amounts()
    assert totals(tmp_path).reserved.dollars >= 0.15 + 0.6
    second.release()
    meter.close()
    assert totals(tmp_path).spent.dollars == pytest.approx(0.15)
    assert totals(tmp_path).spent.tokens == 110
    assert totals(tmp_path).reserved == Amounts()
    assert meter.spent().dollars == pytest.approx(0.15)


def test_costs_count_the_requests_and_not_the_entry(tmp_path: Path) -> None:
    meter = meter_in(tmp_path)
    for _ in range(3):
        meter.reserve("m", 100, 100).settle(Usage(100, 10))
    meter.reserve("m", 100, 100).release()
    meter.close()
    found = overview(Ledger(tmp_path), Limits())
    assert found["total"]["requests"] == found["sessions"][0]["requests"] == 3


def test_a_refusal_tells_of_the_request_and_of_what_was_spent_before(tmp_path: Path) -> None:
    meter = meter_in(tmp_path, tokens=1000)
    meter.reserve("m", 500, 300).settle(Usage(500, 100))
    with pytest.raises(BudgetExhausted, match="600 tokens spent, up to 700 tokens asked for") as refused:
        meter.reserve("m", 100, 600)
    assert "an answer of 600 tokens can take; one of 300 fits" in str(refused.value)


def test_a_ledger_of_the_first_version_is_read_and_brought_up(tmp_path: Path) -> None:
    meter = meter_in(tmp_path)
    meter.reserve("m", 100, 100).settle(Usage(100, 10))
    meter.close()
    with closing(sqlite3.connect(tmp_path / "spending.db")) as db:
        db.execute("ALTER TABLE entries DROP COLUMN requests")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    ledger = Ledger(tmp_path)
    for look in (ledger.reading, ledger.looking):
        with look() as books:
            (id_,) = books.db.execute("SELECT id FROM entries").fetchone()
            entry = books.get(id_)
            assert entry
            assert (entry.requests, entry.input_tokens) == (1, 100)
    meter.reserve("m", 100, 100).settle(Usage(100, 10))
    meter.close()
    assert overview(ledger, Limits())["total"]["requests"] == 2


def test_one_that_is_killed_leaves_what_was_written_by_then_with_the_input_of_what_was_under_way(
    tmp_path: Path,
) -> None:
    import multiprocessing

    process = multiprocessing.get_context("spawn").Process(target=_spend_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -9
    with Ledger(tmp_path).looking() as books:
        assert books.totals("session", "batch-b").spent.dollars == pytest.approx(0.15 + 0.1)


def _spend_and_die(home: Path) -> None:
    import os
    import signal

    meter = meter_in(home)
    meter.reserve("m", 100, 100).settle(Usage(100, 10))
    meter.reserve("m", 100, 100)
    meter.flush()
    meter.reserve("m", 100, 100)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_budget_lets_through_as_many_requests_as_fit_one_by_one(tmp_path: Path) -> None:
    meter = meter_in(tmp_path, dollars=2.0)
    under_way = [meter.reserve("m", 100, 100) for _ in range(3)]  # 0.6 each at most
    with pytest.raises(BudgetExhausted):
        meter.reserve("m", 100, 100)
    for share in under_way:
        share.settle(Usage(100, 0))  # 0.1 each
    assert [meter.reserve("m", 100, 100) for _ in range(2)]
    with pytest.raises(BudgetExhausted):
        meter.reserve("m", 100, 100)


def test_a_first_request_that_is_refused_leaves_a_ledger_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(BudgetExhausted):
        meter_in(tmp_path, dollars=0.1).reserve("m", 100, 100)
    assert totals(tmp_path) == Totals()


requests = st.tuples(st.integers(0, 2000), st.integers(0, 2000), st.floats(0, 1), st.integers(0, 3))


@settings(max_examples=30)
@given(st.lists(requests, max_size=30), st.floats(0.1, 100))
def test_no_order_of_requests_spends_more_than_the_budget_and_all_adds_up(
    tmp_path_factory: pytest.TempPathFactory, asked: list[tuple[int, int, float, int]], budget: float
) -> None:
    home = tmp_path_factory.mktemp("home")
    meter, spent, under_way = meter_in(home, dollars=budget), 0.0, list[tuple[Share, Usage]]()

    def settle() -> float:
        share, usage = under_way.pop(0)
        return share.settle(usage)

    for input_tokens, output_tokens, used, waiting in asked:
        try:
            share = meter.reserve("m", input_tokens, output_tokens)
        except BudgetExhausted:
            continue
        under_way.append((share, Usage(input_tokens, int(used * output_tokens))))
        while len(under_way) > waiting:
            spent += settle()
        if waiting == 1:
            meter.flush()
    while under_way:
        spent += settle()
    assert spent <= budget + 1e-6
    assert meter.spent().dollars == pytest.approx(spent)
    meter.close()
    assert totals(home).spent.dollars == pytest.approx(spent)
    assert totals(home).reserved.dollars == 0
