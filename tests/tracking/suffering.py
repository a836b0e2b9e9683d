"""A run that is uploaded live while W&B is ill for a time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

from rl_cli.runs.curves import as_number
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.times import seconds_of
from rl_cli.tracking.rows import Key, Row, as_logged, key_of, key_of_logged
from rl_cli.tracking.sync import sync_run
from rl_cli.tracking.sync_command import FILES
from tests.runs.kit import start, steps, until, until_over
from tests.tracking.kit import there, tracking, until_left_alone
from tests.wandb_server.faults import EVERY_FAULT
from tests.wandb_server.server import WandbServer

EVERY_SECONDS = 0.05
MOST_SLOWER, MOST_SLOWER_P99 = 1.2, 3.0
"""The median of the seconds of a step, and the rare ones, may be so many times those of a healthy run."""
LONGEST_BLOCK = 3.0
"""Seconds: a call that waits for a network waits for longer, 10 s and more in the SDK."""
TOLD_ILL = ("unavailable", "unauthorised", "behind")


@dataclass(frozen=True)
class Pace:
    """Seconds between two steps."""

    median: float
    p99: float
    longest: float

    def slower_than(self, healthy: Pace) -> list[str]:
        """In what a run is slower than a healthy one beside it; empty: as fast as ever."""
        bounds = {
            "median": MOST_SLOWER * healthy.median,
            "p99": MOST_SLOWER_P99 * healthy.p99,
            "longest": max(MOST_SLOWER_P99 * healthy.longest, healthy.median + LONGEST_BLOCK),
        }
        found = {name: getattr(self, name) for name in bounds}
        return [
            f"{name}: {found[name]:.3f} s, {b:.3f} s at most" for name, b in bounds.items() if found[name] > b
        ]


@dataclass
class Suffered:
    """What came of it."""

    run: RunDir
    told: list[str]
    """States of tracking.json while it was ill, in order."""
    pace: Pace
    """While it was ill."""
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
    """Whether the server has every row of the run with its figures, and its files."""
    arrived = {key: row for one in server.runs.values() for row in one.rows if (key := key_of_logged(row))}
    return _same_figures(run, arrived) and set(FILES) <= set(server.only_run().files)


def _same_figures(run: RunDir, arrived: Mapping[Key, Row]) -> bool:
    for row in run.metrics():
        if (key := key_of(row)) is None:
            continue
        sent = arrived.get(key)
        if sent is None:
            return False
        figures = {name: value for name, value in as_logged(row).items() if name != "_timestamp"}
        if any(not _same(value, sent.get(name)) for name, value in figures.items()):
            return False
    return True


def _same(logged: Any, sent: Any) -> bool:
    ours, theirs = as_number(logged), as_number(sent)
    return ours == theirs or (ours is not None and theirs is not None and isnan(ours) and isnan(theirs))


def pace(run: RunDir, began: float, ended: float) -> Pace:
    """Between two rows of metrics.jsonl in a span of Unix time."""
    times = [seconds_of(row["time"]) or 0.0 for row in run.metrics()]
    inside = [moment for moment in times if began <= moment <= ended]
    gaps = [later - earlier for earlier, later in pairwise(inside)]
    return Pace(statistics.median(gaps), statistics.quantiles(gaps, n=100)[-1], max(gaps))
