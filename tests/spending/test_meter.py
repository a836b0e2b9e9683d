from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from environments.policies.base import BudgetExhausted, PolicyError, Usage
from environments.policies.scripted import ScriptedPolicy
from rl_cli.spending.ledger import Entry, Ledger
from rl_cli.spending.limits import Limits
from rl_cli.spending.meter import SessionMeter
from rl_cli.spending.metered import metered
from rl_cli.spending.units import Amounts
from tests.spending.kit import Clock, cents, meter, settings, start, totals


def test_a_request_is_reserved_at_its_dearest_and_settled_at_what_it_was(home: Path) -> None:
    made, _ = meter(home)
    reservation = made.reserve("x/y", 1000, 100)
    assert totals(home).reserved == Amounts(2.0, 1100)
    assert reservation.settle(Usage(900, 50)) == pytest.approx(1.4)
    assert totals(home).spent == made.spent() == Amounts(1.4, 950)


def test_only_the_first_ending_of_a_reservation_counts(home: Path) -> None:
    reservation = meter(home)[0].reserve("x/y", 1000, 100)
    assert reservation.settle(Usage(1000, 0)) == 1.0
    assert reservation.settle_unknown(Usage(1000, 100)) == 1.0
    reservation.release()
    assert totals(home).spent.dollars == 1.0


LIES = (
    Usage(10**12, 10**12, 10**12),
    Usage(10**30, 5),
    Usage(5, 10**400),
    Usage(-(10**30), 10**12),
)


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("price", [0.0, 0.01, 1e9, 1e300, float("inf")])
def test_one_reply_that_lies_about_its_tokens_leaves_the_ledger_sound(
    home: Path, lie: Usage, price: float
) -> None:
    def price_of(model: str, usage: Usage) -> float:
        return usage.input_tokens * price + usage.output_tokens * price

    warnings: list[str] = []
    made = SessionMeter(Ledger(home), Limits(), "s", price_of, on_warning=warnings.append)
    for _ in range(3):
        assert 0 <= made.reserve("x/y", 10, 10).settle(lie) <= 1e6
    taken = totals(home)
    assert taken.reserved == Amounts()
    assert 0 <= taken.spent.tokens <= 3 * 10**12
    assert 0 <= taken.spent.dollars <= 3e6
    assert bool(warnings) == (lie not in LIES[:1])
    honest, _ = meter(home, "honest")
    honest.reserve("x/y", 1000, 100).settle(Usage(900, 50))
    assert totals(home, name="honest").spent == Amounts(1.4, 950)
    day = totals(home, "day", honest.ledger.today())
    assert day.spent.dollars == pytest.approx(taken.spent.dollars + 1.4, abs=1e-9)
    assert day.spent.tokens == taken.spent.tokens + 950


def test_a_run_cannot_take_more_than_can_be(home: Path) -> None:
    ledger = Ledger(home)
    ledger.reserve(Entry("run", Amounts(float("inf"), 0, float("nan"), 1e300), run="r"))
    assert totals(home, "run", "r").reserved == Amounts(1e6, 0, 1e6, 1e6)


def test_a_released_request_costs_nothing_and_a_silent_server_is_paid_its_input(home: Path) -> None:
    made, _ = meter(home)
    made.reserve("x/y", 1000, 100).release()
    assert made.reserve("x/y", 1000, 100).settle(Usage()) == 1.0
    assert totals(home).spent == Amounts(1.0, 1000)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (
            {"session": {"dollars": 3.0}},
            "this session's budget of $3.00 does not allow this: $1.00 spent, $1.00",
        ),
        ({"day": {"dollars": 3.0}}, "rl-cli config set budgets.day.dollars"),
        ({"session": {"tokens": 2500}}, "2,500 tokens"),
    ],
)
def test_no_request_goes_out_that_may_exceed_a_budget(home: Path, limits: dict, words: str) -> None:
    made, _ = meter(home, **limits)
    made.reserve("x/y", 1000, 100).settle(Usage(1000, 0))
    made.reserve("x/y", 1000, 0)
    with pytest.raises(BudgetExhausted) as error:
        made.reserve("x/y", 1000, 101)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_too_dear_only_at_its_worst_says_which_answer_would_fit(home: Path) -> None:
    made, _ = meter(home, session={"dollars": 6.0})
    with pytest.raises(BudgetExhausted) as error:
        made.reserve("x/y", 1000, 32_000)  # $1 for the question, a cent for each token of the answer
    said = str(error.value)
    assert "the most that an answer of 32,000 tokens can take; one of 500 fits" in said
    assert "rl-cli config set endpoints.x.max_output_tokens 500" in said
    made.reserve("x/y", 1000, 500)
    with pytest.raises(BudgetExhausted) as error:  # nothing is left for any answer
        made.reserve("x/y", 1000, 32_000)
    assert "max_output_tokens" not in str(error.value)


def test_an_answer_that_fits_a_budget_of_tokens_is_told(home: Path) -> None:
    with pytest.raises(BudgetExhausted, match="one of 1,000 fits"):
        meter(home, session={"tokens": 2000})[0].reserve("x/y", 1000, 32_000)


def test_an_unknown_price_is_refused_only_where_dollars_are_bounded(home: Path) -> None:
    bounded = {"session": {"dollars": 1.0}}
    with pytest.raises(
        BudgetExhausted, match=r'the price of x/unknown is not known.*prices\.models\."x/unknown"'
    ):
        meter(home, **bounded)[0].reserve("x/unknown", 1, 1)
    assert meter(home, allow_unknown=True, **bounded)[0].reserve("x/unknown", 1, 1).settle(Usage(1, 1)) == 0.0
    assert meter(home, session={"tokens": 9})[0].reserve("x/unknown", 1, 1).settle(Usage(1, 1)) == 0.0
    assert meter(home)[0].reserve("x/unknown", 1, 1).settle(Usage(1, 1)) == 0.0
    assert totals(home).spent == Amounts(0.0, 6)


def test_a_warning_comes_at_80_percent_once_over_all_processes(home: Path) -> None:
    made, warnings = meter(home, session={"dollars": 10.0})
    made.reserve("x/y", 7900, 0).settle(Usage(7900, 0))
    assert warnings == []
    made.reserve("x/y", 100, 0).settle(Usage(100, 0))
    assert warnings == ["80% of this session's budget is spent: $8.00 of $10.00"]
    made.reserve("x/y", 100, 0).settle(Usage(100, 0))
    again, more = meter(home, session={"dollars": 10.0})
    again.reserve("x/y", 100, 0).settle(Usage(100, 0))
    assert (len(warnings), more) == (1, [])
    raised, told = meter(home, session={"dollars": 10.2})  # another budget is another warning
    raised.reserve("x/y", 1, 0)
    assert len(told) == 1


def test_hours_bound_the_turns(home: Path) -> None:
    made, _ = meter(home, session={"hours": 0.3 / 3600})
    assert made.seconds_left() == pytest.approx(0.3)
    made.turn_started()
    time.sleep(0.1)
    left = made.seconds_left()
    assert left is not None
    assert left < 0.21
    made.reserve("x/y", 1, 1).settle(Usage(1, 1))
    time.sleep(0.3)
    with pytest.raises(BudgetExhausted, match=r"budget of 0\.3 s is used up"):
        made.reserve("x/y", 1, 1)
    made.turn_ended()
    assert made.seconds_left() == 0.0
    with pytest.raises(BudgetExhausted):
        made.turn_started()
    assert meter(home, session={"dollars": 1})[0].seconds_left() is None


def test_the_wait_for_a_person_is_no_work(home: Path) -> None:
    made, _ = meter(home, session={"hours": 1})
    made.turn_started()
    made.pause()
    time.sleep(0.3)
    assert made.seconds_left() == pytest.approx(3600, abs=0.25)
    made.resume()
    made.turn_ended()
    assert made.spent().hours * 3600 < 0.3
    made.turn_started()
    time.sleep(0.3)
    made.turn_ended()
    assert made.spent().hours * 3600 >= 0.3


TURN = """
made = meter(Path(sys.argv[1]))[0]
made.turn_started()
time.sleep(0.2)
made.reserve("x/y", 1, 1).release()
print("worked", flush=True)
time.sleep(600)
"""


def test_the_turn_of_a_killed_process_counts_as_long_as_it_was_seen(home: Path) -> None:
    process = start(TURN, str(home))
    assert process.stdout
    process.stdout.readline()
    process.kill()
    process.wait()
    assert totals(home).spent.hours * 3600 >= 0.2


def test_a_turn_over_midnight_counts_for_both_days(home: Path) -> None:
    clock = Clock()
    made = SessionMeter(Ledger(home, clock), Limits(), "s", cents)
    first = made.ledger.today()
    made.turn_started()
    time.sleep(0.05)
    clock.now += 86_400
    made.reserve("x/y", 1, 1).release()
    time.sleep(0.05)
    made.turn_ended()
    for day in (first, made.ledger.today()):
        assert totals(home, "day", day).spent.hours > 0


def test_without_a_ledger_nothing_is_sent_and_an_answer_is_not_lost(home: Path) -> None:
    made, warnings = meter(home)
    reservation = made.reserve("x/y", 1000, 100)
    made.ledger.path.write_bytes(b"x" * 4096)
    assert reservation.settle(Usage(1000, 100)) == 2.0
    assert "not recorded yet" in warnings[0]
    with pytest.raises(PolicyError, match="damaged") as error:
        made.reserve("x/y", 1000, 100)
    assert not isinstance(error.value, BudgetExhausted)


def test_a_meter_is_what_the_settings_ask_for(home: Path) -> None:
    asked = settings(
        budgets={"session": {"dollars": 1.0}, "day": {"tokens": 5000}},
        prices={"models": {"x/y": {"input": 100.0, "output": 0.0}}},
    )
    made = SessionMeter.open(home, asked, "s", base_url="https://llm.example.com/v1")
    made.reserve("x/y", 4000, 0).settle(Usage(4000, 0))
    with pytest.raises(BudgetExhausted, match="today's budget of 5,000 tokens"):
        made.reserve("x/y", 1001, 0)
    with pytest.raises(BudgetExhausted, match="price of x/z"):
        made.reserve("x/z", 1, 0)


def test_a_policy_that_is_no_endpoint_needs_no_meter(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "replies.yaml"
    file.write_text("- text: hello\n")
    policy = ScriptedPolicy(file)
    assert metered(policy, home, "s") is policy


def test_the_meter_imports_nothing_heavy() -> None:
    code = "import sys, rl_cli.spending.meter as m; print(*{n.partition('.')[0] for n in sys.modules})"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not {"genai_prices", "pydantic", "sqlite3", "openai", "httpx"} & set(done.stdout.split())


def test_concurrent_requests_of_one_process_share_a_meter(home: Path) -> None:
    made, _ = meter(home, session={"tokens": 1000})

    async def one() -> int:
        try:
            reservation = await asyncio.to_thread(made.reserve, "x/y", 10, 10)
        except BudgetExhausted:
            return 0
        await asyncio.sleep(0.01)
        await asyncio.to_thread(reservation.settle, Usage(10, 10))
        return 1

    async def all_of_them() -> int:
        return sum(await asyncio.gather(*(one() for _ in range(60))))

    assert asyncio.run(all_of_them()) == 50
    assert totals(home).spent.tokens == 1000
