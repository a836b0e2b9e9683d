"""Whoever puts a run back may be killed before any change of any file: the next resume comes to the same."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from rl_cli.runs import checkpoints
from rl_cli.runs.resuming.plan import make_plan
from rl_cli.runs.resuming.resume import put_back
from rl_cli.runs.store import RunDir, create_run
from rl_cli.runs.times import now_text
from tests.runs.kit import replay_config

CHANGING = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree", "os.link"}
MOST = 400


def failed_run(home: Path) -> RunDir:
    """NaN at step 8, checkpoints at 3 and 5, a damaged one at 7, one that was being written."""
    run = create_run(replay_config(), home)
    run.append_metrics("sft", 20, loss=2.0)
    for step in range(1, 9):
        run.append_metrics("grpo", step, loss=math.nan if step == 8 else 0.1)
        run.append_sample(phase="grpo", step=step, prompt=f"task {step}")
        if step in (3, 5, 7, 8):
            folder = run.path / "checkpoints" / ".writing"
            folder.mkdir()
            (folder / "model.safetensors").write_bytes(b"w" * 100)
            checkpoints.place(run.path, step, folder)
    (run.path / "checkpoints" / "step-7" / "model.safetensors").write_bytes(b"w")
    (run.path / "checkpoints" / ".writing").mkdir()
    (run.path / "evaluations").mkdir()
    for which in ("initial", "final"):
        (run.path / "evaluations" / f"{which}.jsonl").write_text("{}\n")
    run.mark_ready("trainer")
    run.write_exit("trainer", 1, "failed", "nan")
    run.request_stop("user", "seen enough")
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"phase": "gr')
    with run.locked() as writer:
        writer.move("failed", "loss became nan", ended=now_text())
    return run


def put_back_here(run: RunDir) -> None:
    with run.locked() as writer:
        plan, config = make_plan(run, writer.state, {})
        put_back(run, writer, plan, config, {})


def put_back_and_die(run: RunDir, at: int) -> bool:
    """In a child that is killed just before its change number `at`; returns whether it came to its end."""
    child = os.fork()
    if child == 0:
        left = at

        def count(event: str, args: tuple[Any, ...]) -> None:
            nonlocal left
            writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
            if event in CHANGING or writes:
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            put_back_here(run)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"the child failed at change {at}"
    return status == 0


def outcome(run: RunDir) -> dict[str, Any]:
    """What a resume makes of the directory, without times."""
    texts = {
        str(path.relative_to(run.path)): path.read_text()
        for pattern in ("*.jsonl", "evaluations/*", "checkpoints/*/*", "attempts/*/*.jsonl", "attempts/*/*/*")
        for path in run.path.glob(pattern)
        if path.name != "events.jsonl"
    }
    state = json.loads((run.path / "state.json").read_text())
    resumed = [event for event in run.events() if event["kind"] == "resumed"]
    return {
        **texts,
        "state": [state[name] for name in ("state", "attempt", "step", "processes")],
        "resume": run.resume(),
        "resumed": [(event["attempt"], event["step"]) for event in resumed],
        "before": json.loads((run.path / "attempts/1/state.json").read_text())["reason"],
        "files": sorted(path.name for path in run.path.iterdir() if not path.name.endswith(".tmp")),
    }


def test_a_resume_that_is_killed_anywhere_is_done_again(home: Path):
    original = failed_run(home)
    keep = home / "original"
    shutil.copytree(original.path, keep)
    put_back_here(original)
    wanted = outcome(original)
    assert wanted["state"] == ["created", 2, 5, {}]
    assert [row.get("step") for row in original.metrics()] == [20, 1, 2, 3, 4, 5]
    assert len(original.samples()) == 5
    assert sorted(path.name for path in (original.path / "checkpoints").iterdir()) == ["step-3", "step-5"]
    lines = (original.path / "attempts/1/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines[:3]] == [6, 7, 8]
    assert lines[3:] == ['{"phase": "gr']
    assert "reason" in json.loads((original.path / "attempts/1/stop.json").read_text())
    for at in range(1, MOST):
        shutil.rmtree(original.path)
        shutil.copytree(keep, original.path)
        if put_back_and_die(original, at):
            break
        if json.loads((original.path / "state.json").read_text())["state"] != "created":
            put_back_here(original)
        assert outcome(original) == wanted, f"killed before change {at}"
    assert 20 < at < MOST - 1
