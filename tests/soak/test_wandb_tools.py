"""Every fault of W&B under the assistant's tools: each call comes back in time, and says what is known."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tools.calls import call, context
from tests.tracking.kit import use
from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, plant_run
from tools.dispatcher import ApprovalRequest, CallContext, Verdict, tool_specs

pytestmark = [pytest.mark.soak, pytest.mark.waits]
RUN = {"run": "team/rl/abc123"}
CALLS: dict[str, dict[str, Any]] = {
    "wandb_list_projects": {"entity": "team"},
    "wandb_list_runs": {"project": "team/rl"},
    "wandb_get_run": RUN,
    "wandb_get_history": {**RUN, "metrics": ["train/reward"]},
    "wandb_get_system_metrics": RUN,
    "wandb_compare_runs": {"runs": ["team/rl/abc123", "team/rl/other"]},
    "wandb_stop_run": RUN,
}
EVERYWHERE = [(fault, "all") for fault in ("refused", *EVERY_FAULT)]
PARTS = [(fault, part) for fault in EVERY_FAULT for part in ("graphql", "file_stream", "storage")]
MOST_SECONDS = 180.0
"""Of any call: a check of a run may wait for ever, but not where it is not asked to wait."""
CHECKED = {"run_id": "wandb:team/rl/abc123"}


async def _yes(request: ApprovalRequest) -> Verdict:
    return Verdict(True)


def _given(*toolsets: str) -> CallContext:
    return context(toolsets=toolsets, approve=_yes)


def _timed(name: str, arguments: dict[str, Any], *toolsets: str) -> dict[str, Any]:
    """The result of a call, which came back before its deadline."""
    began = time.monotonic()
    found = call(name, arguments, _given(*toolsets))
    took = time.monotonic() - began
    deadline = min(tool_specs(toolsets)[name].deadline or math.inf, MOST_SECONDS)
    told = "told" if found["ok"] else found["error"]["type"]
    print(f"{name:25} {took:5.1f} s of {deadline:.0f}  {told}")
    assert took < deadline
    return found


def test_no_tool_of_the_set_is_left_out() -> None:
    assert set(CALLS) == set(tool_specs(("wandb",)))


@pytest.mark.parametrize(("fault", "part"), [*EVERYWHERE, *PARTS])
def test_every_call_is_back_within_its_deadline(
    fault: str, part: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        plant_run(server, curve(50))
        plant_run(server, curve(50), name="other")
        assert "note" not in call(
            "rl_check_status", CHECKED, _given("rl")
        )  # there is a local copy from now on
        if fault != "refused":
            planted = EVERY_FAULT[fault]
            server.plant(planted if part == "all" else replace(planted, where=part))
        well = fault == "slow" or part in ("file_stream", "storage")
        print(f"\n{fault} of {part}")
        with server.refuse() if fault == "refused" else nullcontext():
            for name, arguments in CALLS.items():
                found = _timed(name, arguments, "wandb")
                assert found["ok"] == well
                assert found["ok"] or found["error"]["type"].startswith("wandb_")
            checked = _timed("rl_check_status", CHECKED, "rl")
            assert (checked["ok"], "note" not in checked) == (True, well)
        server.heal()
        assert call("wandb_get_run", RUN, _given("wandb"))["state"] == "running"
