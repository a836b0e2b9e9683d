from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rl_cli.cli.run_details import show_run
from rl_cli.core.errors import Refused
from rl_cli.core.files import append_jsonl
from rl_cli.core.settings import Settings, load_settings
from rl_cli.runs.launch import start_run, stop_run
from rl_cli.runs.settle import settle
from rl_cli.runs.store import RunDir, create_run, list_runs
from rl_cli.runs.times import time_text
from rl_cli.spending.gate import reserve_run
from rl_cli.spending.ledger import Entry, Ledger
from rl_cli.spending.rates import Rate
from rl_cli.spending.units import Amounts
from tests.runs.kit import end_all, identity, replay_config, steps, until, until_over, until_step, write_play
from tests.spending.kit import dead, totals

DEAR = Rate(gpus=2, gpu_hour=1800.0)
"""A dollar a second."""


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    """A home folder whose runs are ended after the test."""
    yield home
    end_all(home)


@pytest.fixture
def user_settings(tmp_path: Path) -> Path:
    """The person's settings file, which does not exist yet."""
    folder = tmp_path / "config" / "rl-cli"
    folder.mkdir(parents=True)
    return folder / "config.yaml"


def begin(
    home: Path, play: list, rate: Rate = DEAR, session: str | None = None, **sections: object
) -> RunDir:
    config = replay_config(write_play(home / "plays", play), {"stop_grace_seconds": 5}, **sections)
    return start_run(config, home, session=session, rate=rate)


def reserve(home: Path, rate: Rate, session: str | None = None, **sections: object) -> Amounts:
    """What is reserved for a run that is about to start."""
    facts = reserve_run(replay_config(**sections), home, load_settings(), rate, session)
    with Ledger(home).reading() as books:
        found = books.get(facts["entry"])
    assert found
    return found.amounts


def entry(home: Path, run: RunDir) -> Entry:
    with Ledger(home).reading() as books:
        found = books.get(run.state()["spending"]["entry"])
    assert found
    return found


def test_a_run_is_reserved_settled_and_shown_at_what_it_took(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = begin(runs, [steps(20, every=0.05)], session="s")
    a_quarter_of_an_hour = pytest.approx(900.0)  # nobody knows yet how long such runs take
    assert entry(runs, run).amounts.dollars == a_quarter_of_an_hour
    assert until_over(run)["state"] == "finished"
    done = until(lambda: (found := entry(runs, run)).state == "settled" and found)
    assert 1 <= done.amounts.dollars < 60
    assert done.amounts.gpu_hours == pytest.approx(done.amounts.dollars / 1800)
    assert (done.run, done.session) == (run.id, "s")
    assert totals(runs).spent.dollars == pytest.approx(done.amounts.dollars, abs=1e-8)
    show_run(run, as_json=False)
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.count("  "))
    assert shown["cost"].strip().startswith("$")
    assert "s of GPU time" in shown["GPU"]
    assert reserve(runs, DEAR).dollars < 60  # now it is known how long such runs take


def test_a_live_run_shows_what_it_took_up_to_now(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = begin(runs, [steps(1000, every=0.05)])
    until_step(run, 60)
    assert entry(runs, run).least.hours < 2 / 3600  # the ledger hears of it every 15 s
    show_run(run, as_json=False, plot=False)
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.count("  "))
    assert float(shown["time"].split()[0]) >= 2
    assert float(shown["cost"].strip().removeprefix("$")) >= 2


def test_a_run_is_stopped_when_its_budget_is_used_up(runs: Path) -> None:
    run = begin(runs, [steps(1000, every=0.05)], budget={"max_gpu_hours": 0.001})
    state = until_over(run, 60)
    assert state["state"] == "stopped"
    assert "the run's budget of" in state["reason"]
    assert [alert["rule"] for alert in state["alerts"]].count("budget_near") == 1


def test_the_settings_bound_every_run(runs: Path, user_settings: Path) -> None:
    user_settings.write_text("budgets: {run: {dollars: 1.5, hours: 2}}\n")
    run = begin(runs, [steps(1000, every=0.05)], budget={"max_hours": 1.0})
    assert run.config_dict()["budget"] == {
        "max_hours": 1.0,
        "deadline": None,
        "max_gpu_hours": None,
        "max_dollars": 1.5,
    }
    state = until_over(run, 60)
    assert state["state"] == "stopped"
    assert "the run's budget of $1.50" in state["reason"]


def test_a_run_that_a_budget_does_not_allow_is_not_made(runs: Path, user_settings: Path) -> None:
    user_settings.write_text("budgets: {day: {dollars: 100}}\n")
    with pytest.raises(Refused, match=r"today's budget of \$100\.00 does not allow this") as refused:
        begin(runs, [steps(5)])
    assert refused.value.exit_code == 3
    assert list_runs(runs) == []
    assert totals(runs, "day", Ledger(runs).today()).reserved.dollars == 0
    reserve(runs, Rate())  # on this computer's CPU it costs nothing


def test_an_unknown_price_of_gpus_is_refused_where_dollars_are_bounded(
    runs: Path, user_settings: Path
) -> None:
    unknown = Rate(gpus=1)
    reserve(runs, unknown)
    with pytest.raises(Refused, match=r"prices\.gpu_hour"):
        reserve(runs, unknown, budget={"max_dollars": 5.0})
    user_settings.write_text("budgets: {session: {dollars: 5}}\n")
    with pytest.raises(Refused, match="GPU hour is not known"):
        reserve(runs, unknown, session="s")
    user_settings.write_text("budgets: {session: {dollars: 5}}\nallow_unknown_prices: true\n")
    reserve(runs, unknown, session="s")


def test_a_run_goes_on_only_as_long_as_its_reservation_can_be_extended(
    runs: Path, user_settings: Path
) -> None:
    user_settings.write_text("budgets: {session: {dollars: 20}}\n")
    quick = begin(runs, {"total_steps": 40, "play": [steps(2)]}, rate=DEAR, budget={"max_hours": 5 / 3600})
    until_over(quick)
    until(lambda: entry(runs, quick).state == "settled")
    long = {"total_steps": 40, "play": [steps(5000, every=0.02)]}
    run = begin(runs, long, session="s")  # expected to take as long as the quick one
    assert entry(runs, run).amounts.dollars < 15
    state = until_over(run, 60)
    assert state["state"] == "stopped"
    assert "this session's budget of $20.00" in state["reason"]


def test_a_killed_supervisor_leaves_the_reservation_to_the_trainer_and_the_next_reader_settles_it(
    runs: Path,
) -> None:
    run = begin(runs, [steps(5), {"delay": 600}])
    until_step(run, 5)
    until(lambda: len(entry(runs, run).owners) == 2)
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until(lambda: settle(run)["state"] == "lost")
    assert totals(runs, "run", run.id).reserved.dollars > 0
    stop_run(run, "user", "enough", now=True)
    assert run.state()["state"] == "stopped"
    done = entry(runs, run)
    assert (done.state, done.amounts.dollars > 0) == ("settled", True)


def test_a_run_of_which_everything_was_killed_is_abandoned_by_name(runs: Path) -> None:
    run = begin(runs, [steps(5), {"delay": 600}])
    until_step(run, 5)
    until(lambda: len(entry(runs, run).owners) == 2)
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    os.kill(identity(run, "trainer").pid, signal.SIGKILL)
    until(lambda: totals(runs, "run", run.id).reserved.dollars == 0)
    assert entry(runs, run).state == "abandoned"
    until(lambda: settle(run)["state"] in ("lost", "failed"))
    assert entry(runs, run).state == "abandoned"


def test_a_trainer_that_outlived_its_supervisor_is_counted_to_its_last_row(home: Path) -> None:
    config = replay_config()
    facts = reserve_run(config, home, Settings(), DEAR)
    run = create_run(config, home, spending=facts)
    began, wrote = (time_text(time.time() - seconds) for seconds in (60, 20))
    gone = dead().to_dict()
    with run.locked() as writer:
        writer.move(
            "starting", None, supervisor=gone, started=began, heartbeat=began, processes={"trainer": gone}
        )
    append_jsonl(run.path / "metrics.jsonl", {"time": wrote, "phase": "grpo", "step": 1})
    assert settle(run)["state"] == "lost"
    assert entry(home, run).amounts.dollars == pytest.approx(40)


def test_a_start_that_comes_to_nothing_gives_its_reservation_back(runs: Path) -> None:
    runs.mkdir()
    (runs / "runs").write_text("in the way")
    with pytest.raises(Exception, match="runs"):
        begin(runs, [steps(5)])
    assert totals(runs, "day", Ledger(runs).today()).reserved.dollars == 0
