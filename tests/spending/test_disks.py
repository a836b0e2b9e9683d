from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.components import mounts
from tests.spending.kit import ROOT

FULL = """
from pathlib import Path
import sys
from environments.policies.base import PolicyError, Usage
from rl_cli.spending.ledger import Ledger
from tests.spending.kit import meter
home = Path(sys.argv[1])
made, warnings = meter(home)
held = [made.reserve("x/y", 1000, 100) for _ in range(3)]
made.reserve("x/y", 1000, 100).settle(Usage(1000, 100))
with (home / "fill").open("wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
for reservation in held:
    reservation.settle(Usage(500, 50))
refused = ""
try:
    while True:  # until the file's own free room is used up
        held.append(made.reserve("x/y", 1, 1))
except PolicyError as error:
    refused = str(error)
(home / "fill").unlink()
for reservation in held:
    reservation.settle(Usage(1, 1))
with Ledger(home).writing() as books:
    found = books.totals("session", "s")
expected = 2.0 + 3 * 1.0 + (len(held) - 3) * 0.011
print(refused)
print(abs(round(found.spent.dollars - expected, 6)), found.reserved.dollars, warnings)
"""

READ_ONLY = """
from pathlib import Path
import subprocess, sys
from environments.policies.base import PolicyError, Usage
from rl_cli.spending.ledger import Entry, Ledger
from rl_cli.spending.units import Amounts
from tests.spending.kit import dead, meter
home = Path(sys.argv[1])
meter(home)[0].reserve("x/y", 1000, 0).settle(Usage(1000, 0))
Ledger(home).reserve(Entry("request", Amounts(9, 900), Amounts(0.25, 250), session="s", owners=[dead()]))
subprocess.run(["mount", "-o", "remount,ro", str(home)], check=True)
made, warnings = meter(home)
print(made.spent().dollars)
try:
    made.reserve("x/y", 1, 1)
except PolicyError as error:
    print(error)
sys.stdout.flush()
from rl_cli.cli.main import run
import os
os.environ["RL_CLI_HOME"] = str(home)
from rl_cli.cli.costs import costs
costs(json_=False, session=None, run=None, day=None)
"""


def on_a_small_disk(tmp_path: Path, script: str) -> list[str]:
    mounts()
    small = tmp_path / "small"
    small.mkdir()
    shell = 'mount -t tmpfs -o size=1m tmpfs "$1" && exec "$2" -c "$3" "$1"'
    argv = ["unshare", "-m", "sh", "-c", shell, "sh", str(small), sys.executable, script]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_on_a_full_disk_what_is_reserved_can_be_settled_and_nothing_new_is_sent(tmp_path: Path) -> None:
    refused, totals = on_a_small_disk(tmp_path, FULL)
    assert "the disk is full" in refused
    assert "nothing is sent" in refused
    assert totals == "0.0 0.0 []"


def test_a_read_only_home_can_be_read_and_nothing_is_sent(tmp_path: Path) -> None:
    lines = on_a_small_disk(tmp_path, READ_ONLY)
    assert lines[0] == "1.0"
    assert "read-only" in lines[1]
    assert "$1.25, 1,250 tokens in 2 requests" in lines[2]
    assert "of that an estimate: $0.25, 250 tokens (abandoned" in lines[3]  # nobody holds that any more
