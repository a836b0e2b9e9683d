"""Whole runs with real processes: started, watched, broken, killed, stopped. Trainers replay files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from rl_cli.core.processes import kill_tree, python_module
from rl_cli.runs.backends import files_of, prepare
from rl_cli.runs.launch import start_run, stop_run
from rl_cli.runs.outcome import sentence
from rl_cli.runs.settle import settle
from rl_cli.runs.state_file import is_over
from rl_cli.runs.store import RunDir, create_run, find_run
from tests.components import mounts
from tests.e2e.cli import command, rl_cli
from tests.processes import with_mark
from tests.runs.kit import (
    end_all,
    identity,
    replay_config,
    start,
    steps,
    until,
    until_over,
    until_state,
    until_step,
    write_play,
)

TAIL = [steps(500, every=0.05, step_from=100)]
"""Goes on for longer than any test waits."""


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    yield home
    end_all(home)


def until_nothing_is_left(run: RunDir) -> None:
    mark = identity(run, "supervisor").mark
    assert mark
    until(lambda: with_mark(mark) == [])


# How runs end by themselves: all are started at once, and none disturbs another.

ENDINGS: dict[str, tuple[list[Any], dict[str, Any], str, str]] = {
    "all steps": ([steps(5)], {}, "finished", "5 steps"),
    "crash": (
        [steps(2), {"log": "about to save"}, {"crash": "boom ✗"}],
        {},
        "failed",
        "Error: boom ✗",
    ),
    "crash while loading": ([{"crash": "no weights"}, {"ready": True}], {}, "failed", "no weights"),
    "exit code": ([steps(2), {"log": "fatal: out of luck"}, {"exit": 3}], {}, "failed", "ended with code 3"),
    "silent end": ([steps(2), {"exit": 0}], {}, "failed", "without saying why"),
    "says that it failed": ([steps(2), {"fail": "no data left"}], {}, "failed", "no data left"),
    "killed": ([steps(2), {"kill": 9}], {}, "failed", "SIGKILL"),
    "segfault": ([steps(2), {"kill": 11}], {}, "failed", "SIGSEGV"),
    "nan": ([steps(3), {"nan": "loss"}, {"stall": "deaf"}], {}, "failed", "loss is NaN at grpo step 4"),
    "no signal": (
        [steps(100, every=0.1, **{"groups/with_signal": 0.0})],
        {"no_signal_batches": 3},
        "failed",
        "no group carried signal in 3 batches",
    ),
    "target": (
        [steps(5), {"evaluation": {"which": "validation", "accuracy": 0.9, "step": 5}}, *TAIL],
        {"target_accuracy": 0.85},
        "finished",
        "target reached",
    ),
    "stall": ([steps(2), {"stall": True}], {"stall_seconds": 1.5}, "failed", "no progress"),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, RunDir]]:
    """One run per ending, started together."""
    home = tmp_path_factory.mktemp("home")
    started = {name: start(home, play, health) for name, (play, health, _, _) in ENDINGS.items()}
    yield started
    end_all(home)


@pytest.mark.parametrize("name", ENDINGS)
def test_a_run_ends_as_what_happened(ended: dict[str, RunDir], name: str) -> None:
    run, (_, _, wanted, reason) = ended[name], ENDINGS[name]
    state = until_over(run)
    assert (state["state"], reason in state["reason"]) == (wanted, True), state["reason"]
    assert state["ended"] >= state["started"]
    until(lambda: [e["state"] for e in run.events() if e["kind"] == "state"][-1] == wanted)
    until(lambda: (run.path / "report.html").exists())
    until_nothing_is_left(run)


def test_a_crash_is_failed_with_its_last_log_lines(ended: dict[str, RunDir]) -> None:
    state = until_over(ended["crash"])
    assert "about to save" in state["last_log_lines"]
    assert state["last_log_lines"][-1] == "RuntimeError: boom ✗"
    assert len(state["last_log_lines"]) <= 20
    assert "finished" not in [e.get("state") for e in ended["crash"].events()]


def test_a_stalled_trainer_shows_where_it_hangs(ended: dict[str, RunDir]) -> None:
    assert any("in _stall" in line for line in until_over(ended["stall"])["last_log_lines"])


def test_a_rule_that_stops_is_a_decision_and_an_alert(ended: dict[str, RunDir]) -> None:
    until_over(ended["nan"])
    until_nothing_is_left(ended["nan"])
    decision = next(e for e in ended["nan"].events() if e["kind"] == "decision")
    assert (decision["by"], decision["what"]) == ("health", "failed")
    assert [alert["rule"] for alert in ended["nan"].summary()["alerts"]] == ["not_finite"]
    assert ended["nan"].metrics()[-1]["loss"] == "NaN"


# Killing.


def test_a_killed_command_line_leaves_the_run_alone_and_watch_picks_it_up(runs: Path) -> None:
    play = write_play(runs / "plays", [steps(60, every=0.05)])
    code = "import subprocess, sys, time; subprocess.run(sys.argv[1:], check=True); time.sleep(60)"  # a shell
    start = command("runs", "start", "gsm8k-mini", f"--backend=replay:{play}", "--set", "tracking.wandb=off")
    shell = subprocess.Popen([sys.executable, "-c", code, *start], start_new_session=True)
    until(lambda: list((runs / "runs").glob("2*")))
    run = find_run(runs, "latest")
    until_step(run, 5)
    os.killpg(shell.pid, signal.SIGKILL)
    shell.wait()
    watched = rl_cli("runs", "watch", run.id[:-3], timeout=60)
    assert watched.code == 0, watched.err
    assert "state: finished" in watched.out
    assert run.summary()["step"] == 60


def test_a_killed_trainer_is_noticed_at_once(runs: Path) -> None:
    run = start(runs, [{"log": "loading"}, steps(3), {"child": 60}, *TAIL])
    until_step(run, 100)
    os.kill(identity(run, "trainer").pid, signal.SIGKILL)
    state = until_over(run)
    assert state["state"] == "failed"
    assert "SIGKILL" in state["reason"]
    assert state["last_log_lines"] == ["loading"]
    until_nothing_is_left(run)


def test_a_killed_supervisor_leaves_a_lost_run_that_its_trainer_settles(runs: Path) -> None:
    tail = {"evaluation": {"which": "final", "n": 100, "accuracy": 0.7}}
    run = start(runs, [steps(30, every=0.1), tail])
    until_state(run, "running")
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    lost = until_state(run, "lost")
    assert not is_over(settle(run))
    assert f"trainer (pid {identity(run, 'trainer').pid}) still runs" in lost["reason"]
    assert json.loads((run.path / "state.json").read_text())["state"] == "lost"
    state = until_over(run)
    assert (state["state"], state["step"], state["eval"]["final"]) == ("finished", 30, 0.7)
    assert json.loads((run.path / "state.json").read_text())["state"] == "finished"
    assert (run.path / "report.html").is_file()


def test_a_run_that_lost_everybody_is_lost_and_watch_fails(runs: Path) -> None:
    run = start(runs, [steps(3), {"child": 60}, *TAIL])
    until_step(run, 100)
    left = identity(run, "trainer").mark
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    os.kill(identity(run, "trainer").pid, signal.SIGKILL)
    watched = rl_cli("runs", "watch", "latest")
    assert watched.code == 1
    assert run.summary()["state"] == "lost"
    assert with_mark(left) == []


# Stopping.


def test_stop_in_the_middle_saves_and_evaluates(runs: Path) -> None:
    final = {"which": "final", "n": 100, "accuracy": 0.5}
    run = start(runs, {"play": [steps(3), *TAIL], "on_stop": [{"checkpoint": 3}, {"evaluation": final}]})
    until_step(run, 3)
    stopped = rl_cli("runs", "stop", run.id, "--reason", "seen enough", "--json")
    assert f"{run.id} may save and be evaluated until " in stopped.err
    assert stopped.code == 0
    summary = stopped.rows()[0]
    assert (summary["state"], summary["reason"]) == ("stopped", "user: seen enough")
    assert summary["eval"]["final"] == 0.5
    assert (run.path / "checkpoints" / "step-3").is_dir()
    assert [e["by"] for e in run.events() if e["kind"] == "stop_requested"] == ["user"]
    again = stop_run(run, "user", "another reason")
    assert again["reason"] == "user: seen enough"
    assert rl_cli("runs", "stop", run.id).code == 0


def test_stop_twice_at_once_is_one_stop(runs: Path) -> None:
    run = start(runs, [*TAIL])
    until_state(run, "running")
    states: list[str] = []
    threads = [
        threading.Thread(target=lambda who=who: states.append(stop_run(run, who, "now")["state"]))
        for who in ("user", "assistant")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert states == ["stopped", "stopped"]
    assert len([e for e in run.events() if e.get("state") == "stopped"]) == 1


def test_stop_while_the_trainer_loads_does_not_wait_for_it(runs: Path) -> None:
    run = start(runs, [{"stall": True}, {"ready": True}], {"stop_grace_seconds": 300})
    until(lambda: "trainer" in run.state()["processes"])
    state = stop_run(run, "user", "changed my mind", wait=20)
    assert (state["state"], run.metrics()) == ("stopped", [])
    until_nothing_is_left(run)


def test_stop_before_the_supervisor_is_up(runs: Path) -> None:
    file = write_play(runs, [steps(3)])
    asked = create_run(replay_config(file), runs)
    asked.request_stop("user", "too early")
    subprocess.run(
        python_module("rl_cli.runs.supervision.supervisor", str(asked.path)), timeout=90, check=True
    )
    assert (asked.state()["state"], asked.state()["processes"]) == ("stopped", {})
    never = create_run(replay_config(file), runs)
    assert stop_run(never, "user", "too early")["state"] == "stopped"
    subprocess.run(
        python_module("rl_cli.runs.supervision.supervisor", str(never.path)), timeout=90, check=True
    )
    assert (never.state()["state"], never.metrics()) == ("stopped", [])


def test_a_trainer_that_heeds_nothing_is_ended_with_its_tree(runs: Path) -> None:
    run = start(runs, [steps(2), {"child": 600}, {"stall": "deaf"}], {"stop_grace_seconds": 0.3})
    until(lambda: "trainer" in run.state()["processes"])
    until(lambda: len(with_mark(identity(run, "trainer").mark)) == 2)
    state = stop_run(run, "user", "enough")
    assert state["state"] == "stopped"
    assert "did not end by itself" in state["reason"]
    until_nothing_is_left(run)


def test_stop_now_leaves_no_time(runs: Path) -> None:
    run = start(runs, [steps(2), {"stall": True}], {"stop_grace_seconds": 600})
    until_step(run, 2)
    assert rl_cli("runs", "stop", run.id, "--now", timeout=90).code == 0
    assert run.state()["state"] == "stopped"


def test_stopping_a_run_without_a_supervisor(runs: Path) -> None:
    final = {"evaluation": {"which": "final", "n": 100, "accuracy": 0.7}}
    run = start(runs, {"play": [*TAIL], "on_stop": [final]})
    until_state(run, "running")
    until(run.metrics)
    os.kill(identity(run, "supervisor").pid, signal.SIGKILL)
    until_state(run, "lost")
    (run.path / ".state.json.0123456789ab.tmp").write_text("{")  # it was killed while it wrote
    state = stop_run(run, "user", "clean up")
    assert (state["state"], state["reason"]) == ("stopped", "user: clean up")
    assert not identity(run, "trainer").alive()
    written = json.loads((run.path / "state.json").read_text())
    assert (written["eval"]["final"], written["step"]) == (0.7, run.metrics()[-1]["step"])
    assert (run.path / "report.html").is_file()
    assert list(run.path.glob(".*.tmp")) == []


def test_a_suspended_supervisor_is_named_and_stop_now_goes_round_it(runs: Path) -> None:
    run = start(runs, [steps(2), {"child": 600}, *TAIL])
    until_step(run, 100)
    os.kill(identity(run, "supervisor").pid, signal.SIGSTOP)
    asked = rl_cli("runs", "stop", run.id, timeout=60)
    assert asked.code == 1
    assert "is suspended" in asked.err
    assert "--now" in asked.err
    assert rl_cli("runs", "stop", run.id, "--now", timeout=60).code == 0
    assert run.state()["state"] == "stopped"
    until_nothing_is_left(run)


def test_stopping_a_run_that_failed_says_so_in_the_exit_code(runs: Path) -> None:
    run = start(runs, [{"fail": "no data left"}])
    until_over(run)
    stopped = rl_cli("runs", "stop", run.id)
    assert stopped.code == 1
    assert "failed" in stopped.out


def test_a_supervisor_that_is_told_to_end_stops_the_run(runs: Path) -> None:
    run = start(runs, [*TAIL])
    until_state(run, "running")
    os.kill(identity(run, "supervisor").pid, signal.SIGTERM)
    state = until_over(run)
    assert state["state"] == "stopped"
    assert "SIGTERM" in state["reason"]


# What else goes wrong.


def test_a_supervisor_that_fails_says_so_and_leaves_nothing_running(runs: Path) -> None:
    run = create_run(replay_config(write_play(runs, [*TAIL])), runs)
    (run.path / "metrics.jsonl").mkdir()  # it cannot be read
    subprocess.run(
        python_module("rl_cli.runs.supervision.supervisor", str(run.path)), timeout=60, check=False
    )
    state = run.state()
    assert state["state"] == "failed"
    assert "metrics.jsonl" in state["reason"]
    assert not identity(run, "trainer").alive()


def test_a_run_yaml_that_cannot_be_used_is_a_failed_run(runs: Path) -> None:
    run = create_run(replay_config("demo"), runs)
    (run.path / "run.yaml").write_text("environment: {name: 7}\n")
    subprocess.run(
        python_module("rl_cli.runs.supervision.supervisor", str(run.path)), timeout=60, check=False
    )
    assert run.state()["state"] == "failed"


def test_two_runs_at_once_do_not_disturb_each_other(runs: Path) -> None:
    one = start(runs, [steps(200, every=0.03)])
    two = start(runs, [steps(40, every=0.03, **{"reward/mean": 0.9})])
    until_step(one, 3)
    assert stop_run(one, "user", "only this one")["state"] == "stopped"
    state = until_over(two)
    assert (state["state"], state["step"]) == ("finished", 40)
    assert {row["reward/mean"] for row in two.metrics()} == {0.9}
    assert one.metrics()[-1]["step"] < 200


def test_state_json_is_whole_for_every_reader(runs: Path) -> None:
    run = start(runs, [steps(150, every=0.01)])
    problems: list[str] = []
    seen: list[int] = []

    def read() -> None:
        while not is_over(run.state()):
            try:
                seen.append(json.loads((run.path / "state.json").read_text())["step"])
            except (OSError, ValueError) as error:
                problems.append(str(error))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(60)
    assert problems == []
    assert len(set(seen)) > 5
    assert run.summary()["step"] == 150


def test_starting_says_what_is_wrong_before_anything_is_made(runs: Path) -> None:
    bad = runs / "bad.yaml"
    bad.parent.mkdir()
    bad.write_text("- step: 1\n- setp: 2\n")
    refused = rl_cli("runs", "start", "gsm8k-mini", "--backend", f"replay:{bad}")
    assert refused.code == 2
    assert f"{bad}:2: unknown entry 'setp' (did you mean step" in refused.err
    assert not (runs / "runs").exists()
    assert rl_cli("runs", "show", "nothing").code == 2


def test_the_processes_of_a_run_hold_no_pipe_of_the_starter(runs: Path) -> None:
    play = write_play(runs, [*TAIL])
    words = (
        "runs",
        "start",
        "gsm8k-mini",
        f"--backend=replay:{play}",
        "--set",
        "tracking.wandb=off",
        "--json",
    )
    began = time.monotonic()
    started = rl_cli(*words)  # reads stdout and stderr to their end, which the run must not hold open
    assert started.code == 0
    run = find_run(runs, started.rows()[0]["id"])
    assert not is_over(run.state())
    assert psutil.Process(identity(run, "supervisor").pid).create_time() <= time.time()
    assert os.getsid(identity(run, "supervisor").pid) != os.getsid(0)
    assert time.monotonic() - began < 60


def test_the_command_line_end_to_end(runs: Path) -> None:
    words = ("--set", "tracking.wandb=off")
    refused = rl_cli("runs", "start", "gsm8k-mini", "--backend", "replay:nan", "--set", "grpo.steps=3")
    assert refused.code == 2
    assert "the file of the replay has 25" in refused.err
    one = rl_cli("runs", "start", "gsm8k-mini", "--backend", "replay:nan", *words, "--json").rows()[0]
    watched = rl_cli("runs", "watch", one["id"])
    assert watched.code == 1
    assert "loss is NaN" in watched.out
    config = runs / "runs" / one["id"] / "run.yaml"
    again = rl_cli("runs", "start", "--config", str(config), "--set", "seed=5", "--json")
    assert again.code == 0, again.err
    two = again.rows()[0]["id"]
    until_over(find_run(runs, two))
    listed = rl_cli("runs", "list", "--json").rows()
    assert [row["id"] for row in listed] == [two, one["id"]]
    assert listed[0] == rl_cli("runs", "show", two, "--json").rows()[0]
    assert rl_cli("runs", "metrics", two, "--last", "2", "--json").rows()[-1]["loss"] == "NaN"
    report = rl_cli("runs", "report", two)
    assert report.code == 0
    assert (runs / "runs" / two / "report.html").is_file()
    compared = rl_cli("runs", "compare", one["id"], two, "--json").rows()[0]
    assert compared["config"] == {"seed": [0, 5]}
    (runs / "runs" / two / "logs" / "uploader.log").touch()
    assert "nothing was written" in rl_cli("runs", "logs", two, "--process", "uploader").err
    logs = rl_cli("runs", "logs", two, "--process", "trainr")
    assert logs.code == 2
    assert "did you mean trainer" in logs.err


def test_watching_can_be_interrupted(runs: Path) -> None:
    run = start(runs, [*TAIL])
    until_state(run, "running")
    watch = subprocess.Popen(
        command("runs", "watch", run.id), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert watch.stdout
    assert watch.stdout.readline()
    watch.send_signal(signal.SIGINT)
    _, err = watch.communicate(timeout=90)
    assert watch.returncode == 130
    assert f"rl-cli runs stop {run.id}" in err
    assert run.state()["state"] == "running"


@pytest.mark.parametrize("words", [("watch",), ("logs", "-f")])
def test_a_run_that_is_deleted_meanwhile_is_one_error_line(runs: Path, words: tuple[str, ...]) -> None:
    run = start(runs, [{"log": "begun"}, *TAIL])
    until_step(run, 100)
    name, *options = words
    argv = command("runs", name, run.id, *options)
    looking = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    assert looking.stdout
    assert looking.stdout.readline()
    processes = [identity(run, "supervisor"), identity(run, "trainer")]
    run.path.rename(runs / "deleted")
    _, err = looking.communicate(timeout=90)
    for process in processes:
        kill_tree(process, grace_seconds=0)
    assert (looking.returncode, len(err.splitlines())) == (1, 1), err
    assert "is gone" in err


def test_a_run_plays_what_its_file_held_when_it_was_made(runs: Path) -> None:
    file = write_play(runs, [steps(3), {"evaluation": {"which": "final", "n": 100, "accuracy": 0.7}}])
    config = prepare(replay_config(file))
    run = create_run(config, runs, files_of(config))
    file.write_text("- crash: another play\n")
    subprocess.run(python_module("rl_cli.runs.supervision.supervisor", str(run.path)), timeout=60, check=True)
    assert (run.state()["state"], run.state()["step"]) == ("finished", 3)
    assert run.config().backend.file == str(file)
    trained = {**run.summary(), "backend": "trl"}
    assert sentence(trained).startswith("Test accuracy was 0.7000 at the end on 100 problems")


def test_following_a_log_ends_with_the_run(runs: Path) -> None:
    run = start(runs, [{"log": "first"}, steps(10, every=0.05), {"log": "last"}])
    followed = rl_cli("runs", "logs", run.id, "-f", timeout=60)
    assert followed.code == 0
    assert followed.out.splitlines() == ["first", "last"]


FULL = """
import sys
from pathlib import Path
from rl_cli.core.json_text import to_json
from tests.runs.kit import start, steps, until_over
wide = {f"figure/{i}": 1.5 for i in range(40)}
run = start(Path(sys.argv[1]), [steps(5), steps(100_000, every=0, **wide)])
print(to_json(until_over(run, 60)))
"""


def test_a_full_disk_is_what_the_run_failed_of(tmp_path: Path) -> None:
    mounts()
    small, root = tmp_path / "small", Path(__file__).parents[2]
    small.mkdir()
    shell = 'mount -t tmpfs -o size=3m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, FULL]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    state = json.loads(done.stdout)
    assert (state["state"], "the disk is full" in state["reason"]) == ("failed", True), state["reason"]
    assert state["step"] > 5


FULL_FROM_THE_START = """
import sys
from pathlib import Path
from rl_cli.core.errors import RlCliError
from tests.runs.kit import start, steps
home = Path(sys.argv[1])
(home / "fill").write_bytes(b"0" * 900_000)
try:
    start(home, [steps(5)])
except RlCliError as error:
    print(error.exit_code, error)
print([path.name for path in (home / "runs").iterdir()])
"""

STOP_WHEN_FULL = """
import os, sys
from pathlib import Path
from rl_cli.core.json_text import to_json
from rl_cli.runs.launch import stop_run
from tests.runs.kit import start, steps, until_state, until_step
home = Path(sys.argv[1])
run = start(home, [steps(5), {"delay": 600}], {"stop_grace_seconds": 3})
until_step(run, 5)
if sys.argv[2] == "reserveless":
    (run.path / ".reserve").unlink()
with (home / "fill").open("wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
if sys.argv[2] == "now":
    sys.argv[2:] = []
state = stop_run(run, "user", "enough", now=len(sys.argv) < 3)
print(to_json([state, [e.get("state") for e in run.events()], run.exit("trainer")]))
"""


def on_a_small_disk(tmp_path: Path, size: str, script: str, *args: str) -> str:
    mounts()
    small, root = tmp_path / "small", Path(__file__).parents[2]
    small.mkdir()
    shell = 'mount -t tmpfs -o size=$3 tmpfs "$1" && exec "$2" -c "$4" "$1" $5'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, size, script, *args]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_run_is_not_made_where_its_end_could_not_be_written(tmp_path: Path) -> None:
    out = on_a_small_disk(tmp_path, "1m", FULL_FROM_THE_START).splitlines()
    assert out[0].startswith("1 the disk is full")
    assert out[1] == "[]"


@pytest.mark.parametrize("how", ["softly", "now", "reserveless"])
def test_a_run_can_be_stopped_on_a_full_disk(tmp_path: Path, how: str) -> None:
    script = STOP_WHEN_FULL
    state, told, exited = json.loads(on_a_small_disk(tmp_path, "2m", script, how))
    assert state["state"] == "stopped", state["reason"]
    if how == "softly":
        assert exited["outcome"] == "stopped"
        assert told[-1] == "stopped"


def test_a_start_that_comes_to_nothing_is_kept_as_failed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(Exception, match="did not start"):
        start_run(replay_config("demo"), runs)
    assert find_run(runs, "latest").summary()["state"] == "failed"
    assert "it ended with code 1" in find_run(runs, "latest").summary()["reason"]
