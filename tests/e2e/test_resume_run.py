"""`runs resume` and the tool: a run that fell over goes on, as a person and as the assistant ask for it."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import faults
from tests.e2e.cli import command, rl_cli
from tests.runs.kit import end_all, start, steps, until, until_over
from tools.dispatcher import ApprovalRequest, CallContext, handle_function_call
from tools.spec import Verdict
from tools.toolsets import load_toolsets

PLAY = [steps(3, 0), {"checkpoint": 2}, {"exit": 3}, {"exit": 3}, steps(2, 0, step_from=4)]


@pytest.fixture
def runs(home: Path) -> Iterator[Path]:
    yield home
    end_all(home)


def test_a_run_is_resumed_on_the_command_line_and_by_the_assistant(runs: Path):
    run = start(runs, PLAY)
    until_over(run)
    refused = rl_cli("runs", "resume", "latest", "--set", "seed=4")
    assert refused.code == 2
    assert "seed cannot change in the middle of a run" in refused.err
    done = rl_cli("runs", "resume", "latest", "--set", "health.stall_seconds=50", "--json")
    assert done.code == 0, done.err
    [printed] = done.rows()
    assert printed["id"] == run.id
    assert printed["resumed"] == {"attempt": 2, "step": 2, "attached": False, "notes": []}
    until_over(run)
    assert run.config().health.stall_seconds == 50

    result, asked = asyncio.run(_call({"run_id": run.id, "changes": {"grpo.keep_last": 3}}))
    assert result["ok"], result
    assert (result["from_step"], result["attempt"]) == (2, 3)
    assert result["how"] == "goes on from step 2 (attempt 3)"
    assert asked is not None
    assert asked.estimate is not None
    assert asked.estimate.scope["run"] == run.id
    assert asked.estimate.what == "go on with a run from step 2 to step 5"
    assert until_over(run)["state"] == "finished"
    assert [row["step"] for row in run.metrics()] == [1, 2, 3, 4, 5]
    again, asked = asyncio.run(_call({}))
    assert asked is None
    assert "played to its end" in again["error"]["message"]


def test_of_three_commands_that_resume_one_run_at_once_one_does(runs: Path):
    run = start(runs, [steps(3, 0), {"checkpoint": 2}, {"exit": 3}, steps(600, 0.05, step_from=4)])
    until_over(run)
    with faults.bystander():
        commands = [
            subprocess.Popen(
                command("runs", "resume", run.id, "--json"),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(3)
        ]
        ends = [(*one.communicate(timeout=120), one.returncode) for one in commands]
        [(won, _, _)] = [end for end in ends if end[2] == 0]
        assert json.loads(won)["resumed"] == {"attempt": 2, "step": 2, "attached": False, "notes": []}
        for out, err, code in sorted(ends, key=lambda end: end[2])[1:]:
            assert (out, code) == ("", 2)
            assert f"{run.id} goes on already: it is " in err
            assert f"rl-cli runs watch {run.id}" in err
        until(lambda: run.last_metrics()["step"] > 5)
        of_run = [line for line in faults.left_of(runs) if run.id in line]
        assert sorted(module in line for line in of_run for module in ("supervisor", "replay_worker")) == [
            *[False] * 2,
            *[True] * 2,
        ]
        kinds = [event["kind"] for event in run.events()]
        assert kinds.count("resumed") == 1
        assert sorted(path.name for path in (run.path / "attempts").iterdir()) == ["1"]
        stopped = rl_cli("runs", "stop", run.id, "--now")
        assert stopped.code == 0, stopped.err
        until(lambda: not faults.left_of(runs))
    done = [row["step"] for row in run.metrics()]
    assert done == list(range(1, len(done) + 1))
    assert run.state()["attempt"] == 2


async def _call(arguments: dict[str, Any]) -> tuple[dict[str, Any], ApprovalRequest | None]:
    """The tool's result, and what a person was asked, if anything."""
    load_toolsets(["rl"])
    asked: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest) -> Verdict:
        asked.append(request)
        return Verdict(True)

    context = CallContext("chat", "s-1", ("rl",), approve=approve)
    answer = json.loads(await handle_function_call("rl_resume_training", arguments, context))
    return answer, asked[0] if asked else None
