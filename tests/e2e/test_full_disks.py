"""Runs whose disk fills up while they are at it, on a small disk of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.components import mounts

PRELUDE = """
import sys
from pathlib import Path
from rl_cli.core.json_text import to_json
from rl_cli.runs.launch import attach_run
from tests.e2e import faults
from tests.runs.kit import start, steps, until, until_over, until_state, until_step
home = Path(sys.argv[1])
def fill():
    with (home / "fill").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
def tell(run):
    state = until_over(run, 60)
    until(lambda: not faults.left_of(home))
    print(to_json([state, [e.get("state") for e in run.events()], run.exit("trainer")]))
"""
AT_THE_END = """
run = start(home, [steps(5), {"delay": 3}])
until_step(run, 5)
fill()
tell(run)
"""
FOR_A_MOMENT = """
run = start(home, [steps(5), {"delay": 5}, steps(3, step_from=6)])
until(lambda: run.state()["step"] == 5)
fill()
beat = run.state()["heartbeat"]
import time; time.sleep(3)
assert run.state()["heartbeat"] == beat, "the disk is not full"
(home / "fill").unlink()
tell(run)
"""
WHEN_LOST = """
run = start(home, [steps(5), {"delay": 4}, steps(3, step_from=6)])
until_step(run, 5)
faults.kill_supervisor(run)
fill()
try:
    attach_run(run)
    print("attached")
except Exception as error:
    print(type(error).__name__)
tell(run)
"""

DOCTOR = """
import json
import subprocess
from tests.e2e.cli import command
done = subprocess.run(command("doctor", "--json"), capture_output=True, text=True)
found = json.loads(done.stdout)["checks"]
print(json.dumps([done.returncode, next(check for check in found if check["name"] == "home")]))
"""


def on_a_small_disk(tmp_path: Path, script: str) -> list[str]:
    """Lines that the script prints, run with a home of 2 MB."""
    mounts()
    small, root = tmp_path / "small", Path(__file__).parents[2]
    small.mkdir()
    shell = 'mount -t tmpfs -o size=2m tmpfs "$1" && export RL_CLI_HOME="$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, PRELUDE + script]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_trainer_that_cannot_write_its_exit_failed_of_the_full_disk(tmp_path: Path) -> None:
    state, told, exited = json.loads(on_a_small_disk(tmp_path, AT_THE_END)[-1])
    assert (state["state"], "the disk is full" in state["reason"]) == ("failed", True), state["reason"]
    assert exited is None
    assert state["step"] == 5
    assert told[-1] == "failed" or "ended" in state


def test_a_disk_that_is_full_for_a_moment_ends_nothing(tmp_path: Path) -> None:
    state, told, exited = json.loads(on_a_small_disk(tmp_path, FOR_A_MOMENT)[-1])
    assert (state["state"], state["step"], told[-1]) == ("finished", 8, "finished")
    assert exited["outcome"] == "finished"


def test_a_supervisor_that_cannot_take_over_on_a_full_disk_leaves_an_end_that_is_true(tmp_path: Path) -> None:
    attached, last = on_a_small_disk(tmp_path, WHEN_LOST)
    state, _, exited = json.loads(last)
    wanted = [exited["outcome"]] if exited else ["lost", "failed"]
    assert state["state"] in wanted, (attached, state["reason"])


def test_the_doctor_warns_of_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    code, check = json.loads(on_a_small_disk(tmp_path, DOCTOR)[-1])
    assert (code, check["state"]) == (1, "broken")
    assert "is nearly full: 2 MB are free" in check["detail"]
