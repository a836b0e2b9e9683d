"""What lets alerts through, and the two small watchers beside the figures: room and samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rl_cli.runs.health import AlertGate, Finding
from rl_cli.runs.recent_samples import KEPT, RecentSamples
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.supervision import room
from rl_cli.runs.supervision.room import EVERY_SECONDS, RoomWatch

WARNING = Finding("kl_high", "KL is 2", "lower it")
CRITICAL = Finding("kl_high", "KL is 9", "stop", severity="critical")


def test_what_goes_on_is_heard_once_and_again_after_a_silence() -> None:
    gate = AlertGate(cooldown=20)
    assert gate.passed([WARNING], 30) == [WARNING]
    assert gate.passed([WARNING], 45) == []
    assert gate.passed([WARNING], 60) == [], "it was not silent: it goes on"
    assert gate.passed([WARNING], 80) == [], "silent for as long as the cool-down, not longer"
    assert gate.passed([WARNING], 101) == [WARNING]


def test_what_gets_worse_and_what_another_rule_finds_is_heard_at_once() -> None:
    gate = AlertGate(cooldown=20)
    other = Finding("slow", "slow", "look")
    assert gate.passed([WARNING], 30) == [WARNING]
    assert gate.passed([CRITICAL, other], 31) == [CRITICAL, other]
    assert gate.passed([CRITICAL], 32) == []


def test_alerts_of_an_earlier_process_are_not_raised_again() -> None:
    gate = AlertGate(cooldown=20)
    gate.remember([{"rule": "kl_high", "severity": "warning"}, {"rule": "odd", "severity": "?"}], 50)
    assert gate.passed([WARNING], 55) == []
    assert gate.passed([CRITICAL], 56) == [CRITICAL]


def test_room_is_looked_at_now_and_then(tmp_path: Path) -> None:
    watch = RoomWatch(tmp_path)
    first = watch.look(100.0)
    assert 0 <= first["disk"][0].free <= first["disk"][0].total
    assert 0 < first["memory"][0].free <= first["memory"][0].total
    assert watch.look(100.0 + EVERY_SECONDS / 2) == first
    assert [one.time for one in watch.look(100.0 + EVERY_SECONDS)["disk"]] == [100.0, 100.0 + EVERY_SECONDS]
    for i in range(2 * room.KEPT):
        watch.look(1000.0 + EVERY_SECONDS * i)
    assert len(watch.look(0.0)["disk"]) == room.KEPT


def test_room_of_a_container_counts_if_it_is_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "CGROUP", tmp_path)
    for name, text in (("max", "1000"), ("current", "700"), ("stat", "anon 500\ninactive_file 100\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    memory = RoomWatch(tmp_path).look(0.0)["memory"][0]
    assert (memory.free, memory.total) == (400.0, 1000.0)
    (tmp_path / "memory.max").write_text("max")
    assert RoomWatch(tmp_path).look(0.0)["memory"][0].total > 1000.0


def test_samples_are_followed_and_read_anew_when_the_file_was_replaced(tmp_path: Path) -> None:
    samples, path = RecentSamples(RunDir(tmp_path)), tmp_path / "samples.jsonl"
    assert samples.read() == []
    rows = [{"step": i} for i in range(KEPT + 10)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"step":')
    assert samples.read() == rows[10:], "the newest whole ones"
    with path.open("a") as file:
        file.write(" 999}\n")
    assert samples.read()[-1] == {"step": 999}
    path.write_text('{"step": 1}\n')
    assert samples.read() == [{"step": 1}]
