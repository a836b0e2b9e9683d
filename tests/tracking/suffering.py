"""A run that is uploaded live while W&B is ill for a time."""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import seconds_of
from rl_cli.tracking.sync import sync_run
from rl_cli.tracking.sync_command import FILES
from tests.runs.kit import start, steps, until, until_over
from tests.tracking.kit import there, tracking, until_left_alone, wanted
from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer

EVERY_SECONDS = 0.05
TOLD_ILL = ("unavailable", "unauthorised", "behind")


@dataclass
class Suffered:
    """What came of it."""

    run: RunDir
    told: list[str]
    """States of tracking.json while it was ill, in order."""
    pace: float
    """Median seconds between two steps while it was ill."""
    by_itself: bool
    """Whether all rows and files were there when the run's processes had ended, without `runs sync`."""
    doubles: int
    """Rows that came more than once."""
    complete: bool
    """Whether all rows and files were there at the very end."""


def suffer(
    server: WandbServer,
    home: Path,
    fault: str | None,
    where: str = "all",
    *,
    mode: str = "live",
    healthy: float = 8.0,
    ill: float = 30.0,
    recovered: float = 10.0,
) -> Suffered:
    """A run: well for `healthy` seconds from the first row that has arrived (0: ill from the start), then ill
    for `ill` seconds, then well for `recovered` seconds, then stopped. `fault` None: well all the time."""
    if healthy:
        run = start(home, [steps(100_000, every=EVERY_SECONDS)], tracking={"wandb": mode})
        until(lambda: there(server), 90)
        time.sleep(healthy)
    began = time.time()
    refused = server.refuse() if fault == "refused" else nullcontext()
    if fault not in (None, "refused"):
        server.plant(replace(EVERY_FAULT[str(fault)], where=where))
    told: list[str] = []
    with refused:
        if not healthy:
            run = start(home, [steps(100_000, every=EVERY_SECONDS)], tracking={"wandb": mode})
            until(lambda: run.last_metrics(), 60)
            began = time.time()
        while time.time() < began + ill:
            state = tracking(run).get("state")
            if state and told[-1:] != [state]:
                told.append(state)
            time.sleep(0.2)
    server.heal()
    ended = time.time()
    time.sleep(recovered)
    run.request_stop("test", "enough")
    until_over(run, 60)
    until_left_alone(run)
    by_itself = is_whole(server, run)
    assert tracking(run)["state"] == ("done" if by_itself else "incomplete"), tracking(run)
    if not by_itself:
        sync_run(run)
    arrived = there(server)
    complete = is_whole(server, run) and tracking(run)["state"] == "done"
    doubles = len(arrived) - len(set(arrived))
    return Suffered(run, told, pace(run, began, ended), by_itself, doubles, complete)


def is_whole(server: WandbServer, run: RunDir) -> bool:
    return set(there(server)) >= wanted(run) and set(FILES) <= set(server.only_run().files)


def pace(run: RunDir, began: float, ended: float) -> float:
    """Median seconds between two rows of metrics.jsonl in a span of Unix time."""
    times = [seconds_of(row["time"]) or 0.0 for row in run.metrics()]
    inside = [moment for moment in times if began <= moment <= ended]
    return statistics.median(later - earlier for earlier, later in pairwise(inside))
