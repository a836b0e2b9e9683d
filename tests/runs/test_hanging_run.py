"""What a person sees of a run that hangs: while it is watched, in its report, and once it is resumed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.cli import rl_cli
from tests.runs.kit import start, steps, until_over

STALLS = [{"phase": "grpo"}, steps(5), {"checkpoint": 5}, {"stall": True}, steps(5, step_from=6)]


def test_a_run_that_hangs_is_told_with_its_step_and_where_it_hangs(runs: Path) -> None:
    run = start(runs, STALLS, {"stall_seconds": 3})
    watched = rl_cli("runs", "watch", run.id)
    assert watched.code == 1
    assert watched.out.startswith(f"{run.id}: gsm8k-mini, profile cpu-demo, backend replay, model tiny\n")
    assert "alert (stalled) at step 5: " in watched.out
    frames = re.findall(r"log: .* in (\w+)\n", watched.out)
    assert frames[-1] == "_stall"
    assert "alert (stalled, critical, at step 5)" in rl_cli("runs", "show", run.id).out

    assert rl_cli("runs", "report", run.id).code == 0
    for name in ("report.html", "report.md"):
        page = (run.path / name).read_text("utf-8")
        decisions = page.partition("Decisions")[2].partition("Checkpoints")[0]
        assert re.search(r"quiet_seconds \d+, limit 3, step 5", decisions), name

    assert rl_cli("runs", "resume", run.id).code == 0
    again = rl_cli("runs", "watch", run.id)
    assert again.out.split("\n")[0].endswith(", model tiny, attempt 2")
    assert "alert at step 5 of attempt 1: stalled" in again.out
    until_over(run)
