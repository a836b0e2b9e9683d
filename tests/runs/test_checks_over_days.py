"""Due times over days: sleep, changes of the clock, restarts, several monitors; the clock is a fake."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pytest

from rl_cli.core.files import read_json, write_json
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.store import RunDir, runs_folder
from tests.runs.fake_clock import FakeClock, running

HALF_HOURS = {"first_check_seconds": 120, "check_every_seconds": 1800}
HOUR = 3600.0


class Monitors:
    """Two monitors that look at one run now and then, as long as the machine is awake."""

    def __init__(self, run: RunDir, clock: FakeClock) -> None:
        self.run, self.clock, self.random = run, clock, Random(4)
        self.taken: list[float] = []
        """Seconds since the start, without clock changes, at which a check was taken."""
        self.passed = 0.0
        self.restart()

    def restart(self) -> None:
        self.both = [DueChecks(self.run, self.clock) for _ in range(2)]

    def watch(self, hours: float) -> None:
        end = self.passed + hours * HOUR
        while self.passed < end:
            step = min(self.random.uniform(0.2, 50), end - self.passed)
            self.clock.pass_(step)
            self.passed += step
            for monitor in self.random.sample(self.both, 2):
                left = monitor.seconds_left()
                assert left is not None
                if left == 0 and monitor.take_check():
                    self.taken.append(self.passed)

    def sleep(self, hours: float) -> None:
        self.clock.pass_(hours * HOUR)
        self.passed += hours * HOUR


def test_48_hours_of_half_hourly_checks_with_sleep_clock_changes_restarts_and_two_monitors(
    home: Path,
) -> None:
    clock = FakeClock()
    monitors = Monitors(running(home, clock, HALF_HOURS), clock)
    monitors.watch(6)
    clock.set_by(HOUR)  # the clocks go forward
    monitors.watch(5)
    monitors.restart()
    monitors.watch(1.3)
    monitors.sleep(7.2)  # nobody looks, whatever the reason
    monitors.watch(6)
    clock.set_by(-HOUR)  # and back
    monitors.watch(4.6)
    monitors.restart()
    monitors.sleep(0.2)  # no due time passes
    monitors.watch(1.9)
    clock.start_anew(3 * HOUR)
    monitors.passed += 3 * HOUR
    monitors.restart()
    monitors.watch(48 - monitors.passed / HOUR)

    due = [120 + 1800 * k for k in range(96)]
    gaps = [(12.3 * HOUR, 19.5 * HOUR), (32.2 * HOUR, 35.2 * HOUR)]
    expected = []
    for begin, end in [*gaps, (48 * HOUR, 0.0)]:
        expected += [t for t in due if t <= begin and t > (expected[-1] if expected else -1)]
        if any(begin < t <= end for t in due):
            expected.append(end)
            due = [t for t in due if not begin < t <= end]
    assert len(monitors.taken) == len(expected)
    late = [taken - at for taken, at in zip(monitors.taken, expected, strict=True)]
    assert all(0 <= seconds < 51 for seconds in late), late
    rows = read_json(monitors.run.path / "checks.json")["log"]
    assert len(rows) == len(monitors.taken)
    assert [row["missed"] for row in rows if row["missed"]] == [14, 6]
    events = [event for event in monitors.run.events() if event["kind"] == "checks_missed"]
    assert [event["missed"] for event in events] == [14, 6]


def test_sch_02_five_missed_due_times_are_one_check_and_the_gap_is_said(home: Path) -> None:
    clock = FakeClock()
    run = running(home, clock, HALF_HOURS)
    clock.pass_(121)
    assert DueChecks(run, clock).take_check()
    clock.pass_(5 * 1800 + 900)
    checks = DueChecks(run, clock)
    assert [checks.take_check(), checks.take_check()] == [True, False]
    assert checks.missed() == 5
    [event] = [event for event in run.events() if event["kind"] == "checks_missed"]
    assert (event["missed"], event["gap_seconds"]) == (5, 4 * 1800 + 901)
    assert checks.seconds_left() == pytest.approx(899)


@pytest.mark.parametrize("each", [12, pytest.param(100, marks=pytest.mark.soak)])
def test_sch_07_two_processes_that_add_many_lose_none_and_a_kill_damages_none(home: Path, each: int) -> None:
    """What is due is kept with each run: there is no file that two writers could share."""
    pids = []
    for _ in range(2):
        if (pid := os.fork()) == 0:
            for _ in range(each):
                take(running(home, FakeClock(), HALF_HOURS))
            os._exit(0)
        pids.append(pid)
    if (killed := os.fork()) == 0:
        while True:
            take(running(home / "killed", FakeClock(), HALF_HOURS))
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0, 0]
    os.kill(killed, signal.SIGKILL)
    os.waitpid(killed, 0)
    found = [path for path in runs_folder(home).iterdir() if not path.name.startswith(".")]
    assert len(found) == 2 * each
    for path in [*found, *runs_folder(home / "killed").glob("2*/")]:
        assert DueChecks(RunDir(path), FakeClock()).seconds_left() is not None
        if (path / "checks.json").exists():
            assert read_json(path / "checks.json")["checks"] == 1


def take(run: RunDir) -> None:
    clock = FakeClock()
    clock.pass_(130)
    assert DueChecks(run, clock).take_check()


@pytest.fixture
def zones() -> Iterator[list[str]]:
    before = os.environ.get("TZ")
    yield ["Europe/Helsinki", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo"]
    os.environ.pop("TZ", None) if before is None else os.environ.update(TZ=before)
    time.tzset()


def test_sch_05_next_times_rise_over_every_transition_of_2026_in_five_zones(
    home: Path, zones: list[str]
) -> None:
    for zone in zones:
        os.environ["TZ"] = zone
        time.tzset()
        changes = transitions(zone)
        assert len(changes) >= 2
        for n, change in enumerate(changes):
            clock = FakeClock(change - 24 * HOUR)
            checks = DueChecks(running(home / f"{zone.replace('/', '-')}-{n}", clock, HALF_HOURS), clock)
            seen: list[float] = []
            for _ in range(100):
                due = checks.next_due()
                assert due is not None
                seen.append(due)
                clock.pass_(due - clock.wall)
                assert checks.take_check()
            steps = {round(b - a) for a, b in pairwise(seen)}
            assert steps == {1800}, (zone, steps)


def test_sch_05_the_second_quarter_to_four_of_helsinki_2017_is_followed_by_later_times(home: Path) -> None:
    begin = datetime(2017, 10, 29, 3, 45, fold=1, tzinfo=ZoneInfo("Europe/Helsinki")).timestamp()
    clock = FakeClock(begin)
    checks = DueChecks(running(home, clock, HALF_HOURS), clock)
    for n in range(10):
        due = checks.next_due()
        assert due == pytest.approx(begin + 120 + 1800 * n)
        clock.pass_(due - clock.wall)
        assert checks.take_check()


def transitions(zone: str) -> list[float]:
    """Unix times in 2026, to the hour, at which the zone's offset changes."""
    hours = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(365 * 24)]
    offsets = [hour.astimezone(ZoneInfo(zone)).utcoffset() for hour in hours]
    return [hours[n].timestamp() for n in range(1, len(hours)) if offsets[n] != offsets[n - 1]]


def test_sch_09_another_run_does_not_make_the_checks_of_the_others_due_again(home: Path) -> None:
    clock = FakeClock()
    runs: list[RunDir] = []
    count = {"A": 0, "B": 0, "C": 0}
    for name in count:
        runs.append(running(home / name, clock, HALF_HOURS))
        clock.pass_(130)
        for known, run in zip(count, runs, strict=False):
            count[known] += DueChecks(run, clock).take_check()
    assert count == {"A": 1, "B": 1, "C": 1}


def test_a_check_whose_holder_gives_it_back_is_due_again_and_one_that_is_settled_is_not(home: Path) -> None:
    clock = FakeClock()
    run = running(home, clock, HALF_HOURS)
    clock.pass_(130)
    first, second = DueChecks(run, clock), DueChecks(run, clock)
    assert first.take_check(hold=True)
    assert not second.take_check()
    first.give_back()
    assert second.seconds_left() == 0
    assert second.take_check(hold=True)
    second.settled()
    assert not first.take_check()
    assert first.seconds_left() == pytest.approx(1790)


def test_a_check_whose_holder_was_killed_is_due_again(home: Path) -> None:
    clock = FakeClock()
    run = running(home, clock, HALF_HOURS)
    clock.pass_(130)
    if (pid := os.fork()) == 0:
        DueChecks(run, clock).take_check(hold=True)
        os._exit(9)
    os.waitpid(pid, 0)
    checks = DueChecks(run, clock)
    assert [checks.take_check(), checks.take_check()] == [True, False]
    assert checks.missed() == 0


def test_a_resumed_run_begins_its_due_times_anew_and_keeps_what_was_judged(home: Path) -> None:
    clock = FakeClock()
    run = running(home, clock, HALF_HOURS)
    alert = {"rule": "kl_high"}
    clock.pass_(130)
    checks = DueChecks(run, clock)
    assert checks.take_check()
    assert checks.take_alerts([alert]) == [alert]
    assert checks.take_end()
    clock.pass_(4000)
    state = read_json(run.path / "state.json")
    again = running(home / "other", clock, HALF_HOURS).state()
    write_json(
        run.path / "state.json",
        {**state, **{key: again[key] for key in ("running_since", "running_clock")}},
    )
    assert checks.seconds_left() == 120
    assert checks.take_alerts([alert]) == []
    assert checks.take_end()


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"checks": "x"}', '{"checks": 1, "anchors": 3, "open": 7, "log": {}}']
)
def test_a_damaged_record_of_the_checks_does_no_harm(home: Path, text: str) -> None:
    clock = FakeClock()
    run = running(home, clock, HALF_HOURS)
    clock.pass_(2000)
    checks = DueChecks(run, clock)
    checks.path.write_text(text)
    assert checks.take_check()
    assert not checks.take_check()


@pytest.mark.parametrize("ahead", [3 * 24 * HOUR, -3 * 24 * HOUR])
@pytest.mark.parametrize(
    ("set_before_the_start", "only_takes"), [(True, False), (False, False), (False, True)]
)
def test_a_clock_that_is_corrected_across_a_start_of_the_machine_never_stops_the_checks(
    home: Path, ahead: float, set_before_the_start: bool, only_takes: bool
) -> None:
    """The clock is wrong while the first check is taken, and right after the machine was off for a minute."""
    clock = FakeClock()
    run = running(home, clock, HALF_HOURS)
    clock.set_by(ahead)
    clock.pass_(130)
    assert DueChecks(run, clock).take_check()
    clock.set_by(-ahead if set_before_the_start else 0)
    if set_before_the_start:
        assert DueChecks(run, clock).seconds_left() == pytest.approx(1790)
    clock.start_anew(60)
    clock.set_by(0 if set_before_the_start else -ahead)
    checks = DueChecks(run, clock)
    left = None if only_takes else checks.seconds_left()
    leaps = not set_before_the_start and ahead < 0  # for all that is known, the machine was off for days
    assert only_takes or left == pytest.approx(0 if leaps else 1790 - (60 if set_before_the_start else 0))
    assert checks.take_check() is leaps
    taken = 0
    for _ in range(96):
        clock.pass_(1800)
        taken += sum(DueChecks(run, clock).take_check() for _ in range(2))
    assert taken == 96


@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 60))]
)
def test_any_days_bring_one_check_per_due_time_and_one_per_gap(home: Path, seed: int) -> None:
    """Sleep, restarts of the machine and clock changes at random; monitors look at least every 15 minutes."""
    random, clock = Random(seed), FakeClock()
    run = running(home, clock, HALF_HOURS)
    passed = known = 0.0
    taken = 0
    while passed < 48 * HOUR:
        happens, seconds = random.random(), random.uniform(60, 900)
        if happens < 0.02:
            seconds = random.uniform(0, 6) * HOUR  # asleep
        if 0.02 <= happens < 0.04:
            seconds = random.uniform(0.02, 3) * HOUR
            clock.start_anew(seconds)
        else:
            clock.pass_(seconds)
        passed += seconds
        known += seconds
        if 0.04 <= happens < 0.1:
            clock.set_by(random.choice([-1, 1]) * random.choice([10, 1800, 24 * HOUR, 30 * 24 * HOUR]))
        elif 0.02 <= happens < 0.03:  # set while the machine was off: what has passed is what the clock says
            leap = random.choice([-1, 1]) * random.choice([1800, 24 * HOUR])
            clock.set_by(leap)
            known += max(-seconds, leap)
            if seconds + leap < 0:  # it went back: nothing has passed since what was last written
                left = DueChecks(run, clock).seconds_left()
                assert left is not None
                assert -1e-6 <= known - (120 + 1800 * taken - left) < 300 + 0.1
                known = 120 + 1800 * taken - left
        due = 0 if known < 120 else int((known - 120) // 1800) + 1
        monitors = [DueChecks(run, clock) for _ in range(random.randint(1, 3))]
        lefts = {round(left, 3) for one in monitors if (left := one.seconds_left()) is not None}
        assert len(lefts) == 1
        assert sum(one.take_check() for one in monitors) == (due > taken)
        taken = max(taken, due)
        assert monitors[0].seconds_left() == pytest.approx(120 + 1800 * taken - known, abs=0.1)
    log = read_json(run.path / "checks.json")["log"]
    assert len(log) <= taken


def test_machines_that_share_a_home_with_clocks_that_differ_count_the_same_time(home: Path) -> None:
    here, there = FakeClock(), FakeClock()
    there.boots, there.seconds = 7, 9e6
    there.set_by(40)
    run = running(home, here, HALF_HOURS)
    for _ in range(100):
        for clock in (here, there):
            clock.pass_(10)
        assert DueChecks(run, here).seconds_left() is not None
        assert DueChecks(run, there).seconds_left() is not None
        DueChecks(run, here).take_check()
    left = [DueChecks(run, clock).seconds_left() for clock in (here, there)]
    assert left == [pytest.approx(920), pytest.approx(880)]
