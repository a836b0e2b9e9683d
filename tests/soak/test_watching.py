"""Watching a run of 100,000 steps at W&B: exact, in bounded memory (OPS-10 in full size)."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl_cli.tracking.ask import Asker
from tests.bench.watch_wandb import ANSWERS, HIGHEST, PEAK, measure, rows
from tests.tracking.kit import use
from tests.wandb_server.server import WandbServer
from tests.wandb_server.somebody import plant_run

pytestmark = [pytest.mark.soak, pytest.mark.alone]
STEPS = 100_000
MOST_MB = 150
MOST_SHARE = 0.02
"""Of a core, while it watches, and over the first ten minutes, reading the history included: that takes more,
for some seconds."""


def test_ops_10_watching_100_000_steps_takes_little_and_is_exact(tmp_path: Path) -> None:
    taken = measure(STEPS, 240, tmp_path)
    print(
        f"\nreading the history: {taken['history_read_cpu_s']} s of CPU in {taken['history_read_s']} s, "
        f"{taken['cpu_share_reading']:.0%} of a core for so long"
    )
    print(f"watching for {taken['watched_s']} s: {taken['cpu_share_watching']:.2%} of a core")
    print(f"worked out from the two, over the first ten minutes: {taken['cpu_share_ten_minutes']:.2%}")
    print(
        f"memory at most: RSS {taken['peak_rss_mb']} MB, PSS {taken['peak_pss_mb']} MB {taken['at_peak_mb']}"
    )
    assert taken["best"] == [taken["right"]] * ANSWERS
    assert taken["peak_rss_mb"] < MOST_MB  # of all its processes, though they share some
    assert taken["cpu_share_watching"] < MOST_SHARE
    assert taken["cpu_share_ten_minutes"] < MOST_SHARE


def test_ops_10_the_best_of_100_000_steps_is_the_same_five_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WandbServer() as server, Asker() as asker:
        use(server, monkeypatch, tmp_path)
        plant_run(server, rows(STEPS), name="big")
        question = {"path": "team/rl/big", "keys": ["reward"], "seconds": 500}
        found = [asker.ask("history", question, 600) for _ in range(ANSWERS)]
    highest = [(one["exact"], one["rows"], one["metrics"]["reward"]["max"]) for one in found]
    assert highest == [(True, STEPS, [int(STEPS * PEAK), HIGHEST])] * ANSWERS
