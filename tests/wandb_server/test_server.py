"""The stand-in, as the real SDK sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer

LOG_AND_READ = """
import json, wandb
run = wandb.init(project="p", id="r", name="shown", config={"lr": 0.1},
                 settings=wandb.Settings(silent=True, console="off", init_timeout=20, finish_timeout=20))
run.define_metric("*", step_metric="global_step")
for step in range(1, 31):
    run.log({"global_step": step, "reward/mean": step / 10})
run.finish()
api = wandb.Api(timeout=10)
found = api.run("team/p/r")
rows = {row["_step"]: row for row in found.scan_history(page_size=7)}
some = {row["_step"]: row for row in found.scan_history(keys=["_step", "reward/mean"], page_size=7)}
found.stop()
print(json.dumps({
    "projects": [p.name for p in api.projects("team")],
    "runs": [r.id for r in api.runs("team/p", filters={"display_name": "shown"}, lazy=False)],
    "state": found.state, "config": found.config["lr"], "last": found.lastHistoryStep,
    "rows": len(rows), "some": some[29]["reward/mean"], "sampled": len(found.history(pandas=False)),
    "keys": len(found.history(keys=["reward/mean"], pandas=False)),
    "files": len(list(found.files())), "step": found.summary["global_step"],
}))
"""


def python(code: str, server: WandbServer, folder: Path) -> dict[str, Any]:
    places = {name: str(folder) for name in ("HOME", "WANDB_DIR", "WANDB_CACHE_DIR", "WANDB_CONFIG_DIR")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **server.environment, **places},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def server() -> Iterator[WandbServer]:
    with WandbServer() as running:
        yield running


def test_the_sdk_logs_reads_and_stops(server: WandbServer, tmp_path: Path) -> None:
    answer = python(LOG_AND_READ, server, tmp_path)
    assert answer == {
        "projects": ["p"],
        "runs": ["r"],
        "state": "finished",
        "config": 0.1,
        "last": 29,
        "rows": 30,
        "some": 3.0,
        "sampled": 30,
        "keys": 30,
        "files": len(server.only_run().files),
        "step": 30,
    }
    assert server.only_run().stopped
    assert server.unknown == []


def test_a_wrong_key_and_every_fault_answer_as_planted(server: WandbServer) -> None:
    import httpx

    query = {"query": "query Viewer { viewer { id } }"}
    url = f"{server.url}/graphql"
    right = ("api", server.api_key or "")
    assert httpx.post(url, json=query, auth=("api", "no")).status_code == 401
    assert httpx.post(url, json=query, auth=right).json()["data"]["viewer"]["entity"] == "team"
    seen = {}
    for name in EVERY_FAULT:
        server.plant(name)
        try:
            answer = httpx.post(url, json=query, auth=right, timeout=0.5)
            seen[name] = f"{answer.status_code} {answer.headers.get('Retry-After', '')}".strip()
        except httpx.HTTPError as error:
            seen[name] = type(error).__name__
        server.heal()
    assert seen == {
        **dict.fromkeys(("hang", "slow", "trickle"), "ReadTimeout"),
        "reset": "ReadError",
        **{status: status for status in ("500", "401", "403", "404")},
        "429": "429 2",
        "429-long": "429 600",
        "malformed": "200",
        "graphql-error": "200",
    }
    with server.refuse(), pytest.raises(httpx.ConnectError):
        httpx.post(url, json=query, auth=right)
    assert httpx.post(url, json=query, auth=right).status_code == 200
