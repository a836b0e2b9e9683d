"""Every fault of W&B under the assistant's tools: each call comes back in time, and says what is known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.tools.calls import call, context
from tests.tracking.kit import use
from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import curve, plant_run
from tools.dispatcher import ApprovalRequest, CallContext, Verdict, tool_specs

pytestmark = [pytest.mark.soak, pytest.mark.waits]
RUN = {"run": "team/rl/abc123"}
CALLS = {
    "wandb_list_runs": {"project": "team/rl"},
    "wandb_get_run": RUN,
    "wandb_get_history": {**RUN, "metrics": ["train/reward"]},
    "wandb_stop_run": RUN,
}


async def _yes(request: ApprovalRequest) -> Verdict:
    return Verdict(True)


def _given() -> CallContext:
    return context(toolsets=("wandb",), approve=_yes)


@pytest.mark.parametrize("fault", EVERY_FAULT)
def test_every_call_is_back_within_its_deadline(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WandbServer() as server:
        use(server, monkeypatch, tmp_path)
        plant_run(server, curve(50))
        server.plant(fault)
        for name, arguments in CALLS.items():
            began = time.monotonic()
            found = call(name, arguments, _given())
            took = time.monotonic() - began
            deadline = tool_specs(("wandb",))[name].deadline
            assert deadline is not None
            assert took < deadline
            told = found["ok"] or found["error"]["type"]
            print(f"{fault:14} {name:20} {took:5.1f} s of {deadline:.0f}  {told}")
            assert told is True or str(told).startswith("wandb_")
            assert (told is True) == (fault == "slow")
        server.heal()
        assert call("wandb_get_run", RUN, _given())["state"] == "running"
