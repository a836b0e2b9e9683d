"""The run that is kept in view during a chat: its line, its alerts, its end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from rl_cli.runs.follow import Follower
from rl_cli.runs.progress import Progress, number
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import LIVE
from rl_cli.runs.store import runs_folder
from rl_cli.runs.times import duration

LOOK_EVERY_SECONDS = 0.5
SEARCH_EVERY = 4
"""Looks between two searches for a run that somebody else has started."""
SEARCHED = 20
"""Runs that are looked at, newest first."""


class RunWatch:
    """Follows the session's run while it is live, else the newest live one.

    Args:
        home: RL_CLI_HOME.
        own_run: The id of the run that the session started, if any.
    """

    def __init__(self, home: Path, own_run: Callable[[], str | None]) -> None:
        self.line = ""
        """The live run in one line; empty where none is live."""
        self.run_id: str | None = None
        """The run that the line is about."""
        self._home = home
        self._own_run = own_run
        self._follower: Follower | None = None
        self._news: list[dict[str, Any]] = []

    @property
    def named_line(self) -> str:
        """The same with the run's id."""
        return f"{self.run_id}  {self.line}" if self.line else ""

    def take_news(self) -> list[dict[str, Any]]:
        """The alerts, and ends of runs, since the last call: events (see `Follower`) with the `run`'s id."""
        news, self._news = self._news, []
        return news

    async def watch(self) -> None:
        """Never returns; files are read off the event loop."""
        own: str | None = None
        for look in count():
            if self._own_run() != own or (self._follower is None and look % SEARCH_EVERY == 0):
                own = self._own_run()
                found = await asyncio.to_thread(self._find, own)
                if found and (self._follower is None or self._follower.run.id != found.id):
                    self._follower = Follower(found)
            if self._follower is not None:
                await self._look(self._follower)
            await asyncio.sleep(LOOK_EVERY_SECONDS)

    def _find(self, wanted: str | None) -> RunDir | None:
        folder = runs_folder(self._home)
        names = sorted(os.listdir(folder), reverse=True) if folder.is_dir() else []
        # Runs of somebody else go on without anybody here: they are kept in view when asked for.
        ours = [name for name in names if not name.startswith((".", "wandb-")) and name != wanted]
        runs = (RunDir(folder / name) for name in [*([wanted] if wanted in names else []), *ours[:SEARCHED]])
        return next((run for run in runs if run.state()["state"] in LIVE), None)

    async def _look(self, follower: Follower) -> None:
        run, seen = follower.run, bool(self.line)
        news = await asyncio.to_thread(follower.news)
        for event in news:
            alert = event.get("kind") == "alert" and (seen or run.id == self._own_run())
            if alert or (event.get("kind") == "state" and follower.over):
                self._news.append({**event, "run": run.id})
        line = run_line(str(follower.state["state"]), follower.progress, follower.sft_steps)
        self.line = "" if follower.over else line
        self.run_id = None if follower.over else run.id
        if follower.over:
            self._follower = None


def run_line(state: str, progress: Progress, sft_steps: int | None = None) -> str:
    """How a run goes, in one short line, what matters first: step, reward, time left, alerts.

    Args:
        state: Of the run.
        progress: Of the run.
        sft_steps: Planned steps of its warm start, where they are known.
    """
    report = progress.report()
    total = f"/{report['total_steps']}" if report["total_steps"] else ""
    phase = report["phase"] or (progress.last_row.get("phase"))
    parts = [] if state == "running" else [state]
    if report["step"]:
        parts.append(f"step {report['step']}{total}")
    elif phase == "sft" and len(progress.sft):
        planned = f"/{sft_steps}" if sft_steps else ""
        parts.append(f"step {progress.sft.steps.steps[-1]}{planned}")
    if report["reward_last"] is not None:
        parts.append(f"reward {report['reward_last']:.3f}")
    elif progress.rows and progress.last_row.get("phase") == phase:
        loss = number(progress.last_row, "loss")
        parts += [f"loss {loss:.3f}"] if loss is not None else []
    if report["eta_seconds"]:
        parts.append(f"{duration(report['eta_seconds'])} left")
    if alerts := progress.current_alerts:
        count = len(alerts)
        parts.append(f"{count} alert{'s' if count > 1 else ''}: {alerts[-1].get('rule')}")
    return "  ".join([*parts, str(phase or state)] if state == "running" else parts)
