"""`rl-cli monitor` with real processes: runs are judged without a chat."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import filelock
import psutil
import pytest
import yaml

from rl_cli.cli.monitor import event_text
from rl_cli.core.files import read_json, write_json
from rl_cli.monitoring.heartbeat import monitor_state
from rl_cli.monitoring.once import Once
from rl_cli.runs.run_dir import RunDir
from tests.e2e.cli import rl_cli
from tests.e2e.forked import Forked
from tests.monitoring.kit import decides
from tests.runs.kit import identity, start, steps, until, until_over, until_state
from tools.spec import Decision

OFTEN = {"first_check_seconds": 0.5, "check_every_seconds": 1}
LEARNS = {"reward/mean": [0.2, 0.9]}
LONG = {"total_steps": 2000, "play": [steps(2000, every=0.05, **LEARNS)]}
SOON = {"first_check_seconds": 0.2, "check_every_seconds": 3600}


class Monitor:
    """The command, in the background."""

    def __init__(self, *words: str) -> None:
        folder = Path(os.environ["RL_CLI_HOME"])
        folder.mkdir(exist_ok=True)
        self.told = folder / f"monitor-{time.monotonic_ns()}"
        with (
            open(os.devnull) as nothing,
            self.told.open("wb") as out,
            self.told.with_suffix(".err").open("wb") as err,
        ):
            streams = [nothing.fileno(), out.fileno(), err.fileno()]
            self.process = Forked(["monitor", "--json", *words], streams, None, dict(os.environ))

    def end(self) -> tuple[int, list[dict[str, Any]]]:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        assert self.told.with_suffix(".err").read_text() == ""
        return code, [json.loads(line) for line in self.told.read_text().splitlines()]


@pytest.fixture
def monitors() -> Iterator[list[Monitor]]:
    begun: list[Monitor] = []
    yield begun
    for one in begun:
        one.process.kill()
        one.process.wait()


def scripted(folder: Path, *replies: Any) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "judge.yaml").write_text(yaml.safe_dump(list(replies)))
    return f"scripted/{folder / 'judge.yaml'}"


def decisions(run: RunDir) -> list[dict[str, Any]]:
    return [event for event in run.events() if event["kind"] == "decision" and "why" in event]


def test_two_monitors_do_each_check_once_and_end_when_they_are_told(
    runs: Path, monitors: list[Monitor]
) -> None:
    model = scripted(runs / "model", decides("", "continue", "noise", repeat=True))
    run = start(runs, LONG, OFTEN)
    monitors += [Monitor("--model", model), Monitor("--model", model)]
    until(lambda: len(decisions(run)) >= 4, 60)
    checks = {check["name"]: check["state"] for check in rl_cli("doctor", "--json").rows()[0]["checks"]}
    assert checks["monitor"] == "ok"
    first = monitor_state(runs)
    assert first
    assert (first.state, list(first.runs)) == ("running", [run.id])
    ended = [one.end() for one in monitors]
    assert [code for code, _ in ended] == [0, 0]
    assert monitor_state(runs).state == "ended"  # type: ignore[union-attr]
    said = [event["what"] for _, rows in ended for event in rows if event["kind"] == "monitor"]
    assert sum("standing by" in line for line in said) == 1
    checks = read_json(run.path / "checks.json")
    made = decisions(run)
    cut_off = 2  # a judgement that each may have been at when it was told to end, and gave back
    assert len(checks["log"]) - cut_off <= len(made) <= len(checks["log"])
    assert checks["checks"] <= len(checks["log"]) + checks["missed"]
    assert {event["by"] for event in made} == {model}


def test_a_monitor_that_was_killed_is_seen_and_another_goes_on(runs: Path, monitors: list[Monitor]) -> None:
    run = start(runs, LONG, OFTEN)
    monitors.append(Monitor())
    until(lambda: decisions(run), 60)
    monitors[0].process.kill()
    monitors[0].process.wait()
    [check] = [c for c in rl_cli("doctor", "--json").rows()[0]["checks"] if c["name"] == "monitor"]
    assert (check["state"], "gone" in check["detail"]) == ("broken", True)
    before = len(decisions(run))
    monitors.append(Monitor())
    until(lambda: len(decisions(run)) > before, 60)
    assert {event["by"] for event in decisions(run)} == {"rules"}


def suspend(monitor: Monitor, run: RunDir) -> None:
    """Not in the middle of a write: the lock that it held then would stay with it."""
    lock = filelock.FileLock(run.path / ".checks.lock", timeout=0)
    while True:
        monitor.process.send_signal(signal.SIGSTOP)
        until(lambda: psutil.Process(monitor.process.pid).status() == psutil.STATUS_STOPPED)
        with suppress(filelock.Timeout), lock:
            return
        monitor.process.send_signal(signal.SIGCONT)


def test_sch_06_a_monitor_that_hangs_is_replaced_and_stands_by_when_it_goes_on(
    runs: Path, monitors: list[Monitor]
) -> None:
    run = start(runs, LONG, OFTEN)
    monitors.append(Monitor())
    until(lambda: decisions(run), 60)
    suspend(monitors[0], run)
    record, before = read_json(runs / "monitor.json"), len(decisions(run))
    record["clock"]["seconds"] -= 100
    write_json(runs / "monitor.json", record)
    [check] = [c for c in rl_cli("doctor", "--json").rows()[0]["checks"] if c["name"] == "monitor"]
    assert (check["state"], "hangs" in check["detail"]) == ("broken", True)
    assert f"kill -9 {monitors[0].process.pid}" in check["remedy"]
    monitors.append(Monitor())
    until(lambda: len(decisions(run)) > before + 1, 60)
    monitors[0].process.send_signal(signal.SIGCONT)
    after = len(decisions(run))
    until(lambda: len(decisions(run)) > after + 4, 60)
    ended = [one.end()[1] for one in monitors]
    said = [[row["what"] for row in rows if row["kind"] == "monitor"] for rows in ended]
    assert "standing by" in said[0][1]
    assert f"in place of pid {monitors[0].process.pid}, which hangs" in said[1][0]
    checks = read_json(run.path / "checks.json")
    assert len({row["due"][:19] for row in checks["log"]}) >= len(checks["log"]) - 2
    assert checks["checks"] <= len(checks["log"]) + checks["missed"]


def test_sch_06_a_run_whose_lock_is_kept_holds_up_nobody(runs: Path, monitors: list[Monitor]) -> None:
    often = {"first_check_seconds": 0.5, "check_every_seconds": 6}
    bad, good = start(runs, LONG, often), start(runs, LONG, often)
    for run in (bad, good):
        until_state(run, "running")

    def known() -> dict[str, Any]:
        return dict(read_json(runs / "monitor.json")["runs"])

    with filelock.FileLock(bad.path / ".checks.lock"):
        monitors.append(Monitor())
        until(lambda: decisions(good), 60)
        missed = read_json(good.path / "checks.json")["missed"]
        until(lambda: len(decisions(good)) > 2, 60)
        for _ in range(3):
            beaten = read_json(runs / "monitor.json")["clock"]
            until(lambda was=beaten: read_json(runs / "monitor.json")["clock"] != was, 60)
        until(lambda: known()[bad.id]["trouble"], 60)
        assert (known()[good.id]["trouble"], known()[good.id]["missed"]) == (None, missed)
        [check] = [c for c in rl_cli("doctor", "--json").rows()[0]["checks"] if c["name"] == "monitor"]
        assert re.search(r"heartbeat \d+ s ago", check["detail"]), check
        assert decisions(bad) == []
        code, rows = monitors[0].end()
        assert code == 0
    assert f"{bad.id}" in [row["run"] for row in rows if row["kind"] == "trouble"]


def test_systemd_hears_that_the_monitor_is_ready_and_alive(
    runs: Path, monitors: list[Monitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        address = f"@rl-cli-test-{os.getpid()}"
        heard.bind("\0" + address[1:])
        heard.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        monitors.append(Monitor())
        assert heard.recv(100) == b"READY=1"
        assert [heard.recv(100) for _ in range(2)] == [b"WATCHDOG=1"] * 2
    assert monitors[0].end()[0] == 0


def test_once_stops_a_run_that_goes_wrong_and_needs_nobody(runs: Path) -> None:
    model = scripted(runs / "model", decides("", "stop", "reward 0.3"))
    run = start(runs, LONG, SOON)
    until_state(run, "running")
    until(lambda: run.last_metrics().get("step", 0) > 20)
    told = rl_cli("monitor", "--once", "--json", "--model", model)
    assert told.code == 0, told.err
    [row] = [row for row in told.rows() if row["kind"] == "decision"]
    assert (row["run"], row["what"], row["reason"]) == (run.id, "stop", "reward 0.3")
    until_over(run)
    assert run.state()["reason"] == "monitor: reward 0.3"


def test_once_says_by_its_exit_code_that_a_run_needs_a_person(runs: Path) -> None:
    model = scripted(runs / "model", decides("", "ask", "odd", "Is the reward right?"))
    run = start(runs, LONG, SOON)
    until_state(run, "running")
    until(lambda: run.last_metrics().get("step", 0) > 20)
    told = rl_cli("monitor", "--once", "--model", model)
    assert told.code == 1
    assert f"{run.id}  decision (" in told.out
    assert re.search(rf"{run.id}  alert \(needs_person\) at step \d+: Is the reward right\?", told.out)
    alerts = until(lambda: run.summary()["alerts"])
    assert (alerts[-1]["rule"], alerts[-1]["message"]) == ("needs_person", "Is the reward right?")
    again = rl_cli("monitor", "--once", "--model", model)
    assert again.code == 0  # its own word to the person is no alert to judge
    assert len(decisions(run)) == 1


def test_a_run_whose_supervisor_was_killed_gets_another_one(runs: Path, monitors: list[Monitor]) -> None:
    run = start(runs, [steps(1000, every=0.05, **LEARNS)], {"first_check_seconds": 3600})
    until_state(run, "running")
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until_state(run, "lost")
    monitors.append(Monitor())
    until_state(run, "running")
    assert identity(run, "supervisor").alive()


def test_a_model_without_a_key_is_refused_at_once(runs: Path) -> None:
    told = rl_cli("monitor", "--model", "openai/some-model")
    assert (told.code, "OPENAI_API_KEY" in told.err) == (2, True)


FAILS = [steps(3, **LEARNS), {"fail": "no more data"}]


def test_once_tells_each_end_once_also_where_nobody_had_judged_the_run(runs: Path) -> None:
    run = start(runs, FAILS)
    until_over(run)
    assert not (run.path / "checks.json").exists()
    first = rl_cli("monitor", "--once", "--json")
    assert (first.code, [(row["run"], row["kind"]) for row in first.rows()]) == (1, [(run.id, "end")])
    assert first.rows()[0]["time"] == run.state()["ended"]
    again = rl_cli("monitor", "--once", "--json")
    assert (again.code, again.rows()) == (0, [])


def test_once_says_of_a_live_run_when_its_check_is_and_tells_a_kill_before_it(runs: Path) -> None:
    run = start(runs, LONG, {"first_check_seconds": 3600})
    until_state(run, "running")
    live = rl_cli("monitor", "--once")
    assert live.code == 0
    assert f"{run.id}  running, step " in live.out
    assert "next check in 59 min" in live.out or "next check in 1 h" in live.out
    os.kill(identity(run, "trainer").pid, signal.SIGKILL)
    until_over(run)
    assert rl_cli("monitor", "--once").code == 1


def test_the_monitor_tells_of_a_run_that_failed_before_its_first_look(
    runs: Path, monitors: list[Monitor]
) -> None:
    run = start(runs, FAILS)
    until_over(run)
    monitors.append(Monitor())
    path = runs / "ends_told.json"
    until(lambda: path.exists() and run.id in read_json(path).get("told", {}), 60)
    _, rows = monitors[0].end()
    assert [row["run"] for row in rows if row["kind"] == "end"] == [run.id]
    assert rl_cli("monitor", "--once").code == 0  # it has been told


def test_the_first_monitor_of_a_home_tells_no_end_that_once_has_told(
    runs: Path, monitors: list[Monitor]
) -> None:
    run = start(runs, FAILS)
    until_over(run)
    assert run.id in rl_cli("monitor", "--once").out
    later = start(runs, FAILS)
    until_over(later)
    monitors.append(Monitor())
    until(lambda: later.id in read_json(runs / "ends_told.json")["told"], 60)
    _, rows = monitors[0].end()
    assert [row["run"] for row in rows if row["kind"] == "end"] == [later.id]


def test_the_end_is_told_with_the_last_words_of_the_model(runs: Path, monitors: list[Monitor]) -> None:
    model = scripted(runs / "model", decides("end", "continue", "it ended", "It learned nothing."))
    monitors.append(Monitor("--model", model))
    run = start(runs, [steps(60, every=0.1, **LEARNS)], {"first_check_seconds": 3600})
    path = runs / "ends_told.json"
    until(lambda: path.exists() and run.id in read_json(path).get("told", {}), 60)
    _, rows = monitors[0].end()
    [end] = [row for row in rows if row["kind"] == "end"]
    assert (end["by"], end["said"]) == (model, "It learned nothing.")
    assert "finished at step 60 of 60" in end["message"]
    assert event_text(end).endswith(f"{model}: It learned nothing.")


def test_a_run_is_judged_by_rule_where_the_model_cannot_be_reached(runs: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        run = start(runs, LONG, SOON)
        until(lambda: run.last_metrics().get("step", 0) > 20)
        told = rl_cli("monitor", "--once", "--json", "--model", "openai/m", "--base-url", url)
    assert told.code == 0, told.err
    [row] = [row for row in told.rows() if row["kind"] == "decision"]
    assert (row["by"], row["what"]) == ("rules", "continue")
    assert "decided by rule: " in row["reason"]
    assert run.state()["state"] == "running"


def test_once_judges_runs_side_by_side_so_that_none_waits_for_a_model_that_hangs(runs: Path) -> None:
    started = [start(runs, LONG, SOON) for _ in range(2)]
    for run in started:
        until(lambda run=run: run.last_metrics().get("step", 0) > 20)
    told: list[tuple[str, str]] = []

    async def once() -> bool:
        all_asked = asyncio.Barrier(2)

        async def judge(digest: str) -> Decision:
            await asyncio.wait_for(all_asked.wait(), 60)
            return Decision("continue", "it learns", "", "model")

        once = Once(runs, lambda run: judge, lambda run_id, event: told.append((run_id, event["kind"])))
        return await once.look()

    assert not asyncio.run(once())
    assert {(run.id, "decision") for run in started} <= set(told)
    assert not [one for one in told if one[1] == "trouble"]
