"""Watches all live runs of a home without a chat: whoever runs this does their checks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rl_cli.core.errors import RlCliError
from rl_cli.monitoring.bounded_calls import ANSWER_SECONDS, BoundedCalls
from rl_cli.monitoring.heartbeat import MonitorState, monitor_state, write_heartbeat
from rl_cli.monitoring.jobs import Beat, Jobs
from rl_cli.monitoring.live_runs import LiveRuns, is_orphan
from rl_cli.monitoring.systemd import notify
from rl_cli.monitoring.telling import Tell, Telling
from rl_cli.monitoring.watching import watch
from rl_cli.runs.checks.due_checks import DueChecks
from rl_cli.runs.launch import attach_run
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State
from rl_cli.runs.store import runs_folder
from rl_cli.runs.times import now_text, time_text
from rl_cli.tracking.watcher import watching
from tools.spec import Judge

SCAN_SECONDS = 5.0
"""Between two looks for runs that somebody has started."""
LOOK_SECONDS = 1.0
"""Between two looks at the files of a run."""
ATTACH_AGAIN_SECONDS = 60.0
BY = "monitor"
TOLD = ("alert", "decision", "state", "checks_missed")
"""Events of a run that are worth a line."""

NO_ANSWER = {"trouble": f"its directory has not answered for {ANSWER_SECONDS:g} s"}
T = TypeVar("T")

JudgeOf = Callable[[RunDir], Judge | None]


class Host:
    """The monitor of one home.

    Args:
        home: RL_CLI_HOME.
        judge_of: Who judges a run; None: the rules do.
        tell: See Tell.
    """

    def __init__(self, home: Path, judge_of: JudgeOf, tell: Tell) -> None:
        self.home, self.judge_of, self.tell = home, judge_of, tell
        self._telling = Telling(home, tell)
        self.started = now_text()
        self.jobs = Jobs(self._attend, self._telling.trouble)
        self.attaching = Jobs(self._attach, self._telling.trouble, again_seconds=ATTACH_AGAIN_SECONDS)
        self._calls = BoundedCalls()
        self._live = LiveRuns(home)
        self._checks: dict[str, DueChecks | None] = {}
        self._ended: dict[str, State] = {}
        """Over, and not looked at since."""
        self._silent: set[str] = set()
        """Calls of which it was told that they do not answer."""

    @property
    def unanswered(self) -> list[str]:
        """What has not answered and still holds a thread: runs, by their ids, and other calls."""
        return self._calls.unanswered

    async def run(self, took_from: MonitorState | None = None) -> None:
        """Until it is cancelled, or another monitor has taken its place, as it may from one that hangs.

        Args:
            took_from: Whose place this one took; what it was judging is due again.
        """
        live: dict[str, State] = {}
        try:
            while self._is_mine():
                live = await self._find(live)
                while self._live.ended:  # looks that come late add to it
                    run_id, state = self._live.ended.popitem()
                    self._ended[run_id] = state
                if took_from:
                    call = partial(self._take_back, live, took_from)
                    await self._answer("what another monitor was judging", call, None)
                    took_from = None
                facts = await self._facts(live)
                silent = self.unanswered
                answering = {
                    name: state for name, state in live.items() if not {name, _state_of(name)} & set(silent)
                }
                self.jobs.keep(answering)
                await self._answer("the ends of runs", self._tell_ends, None)
                self.attaching.keep(run_id for run_id, state in answering.items() if is_orphan(state))
                if self._is_mine():  # not if we were stopped on the way
                    write_heartbeat(self.home, self.started, runs=facts)
                notify("WATCHDOG=1")
                await asyncio.sleep(SCAN_SECONDS)
        finally:
            await self.jobs.close()
            await self.attaching.close()
            with suppress(OSError):
                if self._is_mine():
                    write_heartbeat(self.home, self.started, ended=now_text(), runs={})
                    self._telling.endings.save()

    async def _attend(self, run_id: str, beat: Beat) -> None:
        """One run, to its end."""
        run = self._run(run_id)
        judge = await asyncio.to_thread(self.judge_of, run)

        def on_progress(event: dict[str, Any]) -> None:
            if event.get("kind") in TOLD:
                self.tell(run_id, event)

        async with watching(run):
            over = False
            while not over:
                watched = await watch(
                    run,
                    judge,
                    BY,
                    on_progress=on_progress,
                    look_every=LOOK_SECONDS,
                    end_once=True,
                    on_look=beat,
                )
                await asyncio.to_thread(self._telling.conclude, run, watched)
                over = watched.outcome.why == "end"

    async def _attach(self, run_id: str, beat: Beat) -> None:
        """A new supervisor for a run whose trainer has outlived the old one."""
        await asyncio.to_thread(attach_run, self._run(run_id))
        self.tell(run_id, {"kind": "attached"})

    def _tell_ends(self) -> None:
        """Of runs that were over before anybody attended to them, or whose task failed."""
        for run_id, state in list(self._ended.items()):
            job = self.jobs.jobs.get(run_id)
            if job and not job.task.done():
                continue
            del self._ended[run_id]
            if self._telling.endings.is_news(run_id, state):
                self._telling.end(self._run(run_id), state)

    def _is_mine(self) -> bool:
        found = monitor_state(self.home)
        return not (found and found.is_other)

    def _take_back(self, live: dict[str, State], other: MonitorState) -> None:
        """What a monitor that hangs was judging is due again."""
        for run_id in live if other.process else ():
            with suppress(RlCliError, OSError, ValueError):
                DueChecks(self._run(run_id)).give_back(other.process)

    def _run(self, run_id: str) -> RunDir:
        return RunDir(runs_folder(self.home) / run_id)

    async def _answer(self, name: str, call: Callable[[], T], otherwise: T) -> T:
        """What `call` returns, or `otherwise` if that takes too long; tells of it when it begins to."""
        try:
            found = await self._calls.answer(name, call)
        except TimeoutError as error:
            if name not in self._silent:
                self._telling.trouble(name if name in self._checks else "", str(error))
            self._silent.add(name)
            return otherwise
        self._silent.discard(name)
        return found

    async def _find(self, live: dict[str, State]) -> dict[str, State]:
        """Run id -> state of those that run now; one that does not answer stays as it was in `live`."""
        names = await self._answer("the folder of the runs", self._live.names, list(live))

        async def look(name: str) -> State | None:
            return await self._answer(_state_of(name), partial(self._live.look, name), live.get(name))

        states = await asyncio.gather(*map(look, names))
        return {name: state for name, state in zip(names, states, strict=True) if state}

    async def _facts(self, live: dict[str, State]) -> dict[str, dict[str, Any]]:
        """Run id -> what a heartbeat says of it."""
        self._checks = {run_id: self._checks.get(run_id) for run_id in live}

        async def one(run_id: str, state: State) -> dict[str, Any]:
            known = {"state": state["state"], "step": state.get("step")}
            found = await self._answer(run_id, partial(self._due, run_id), NO_ANSWER)
            job = self.jobs.jobs.get(run_id)
            return {**known, "trouble": job.trouble if job else None, **found}

        found = await asyncio.gather(*(one(run_id, state) for run_id, state in live.items()))
        return dict(zip(live, found, strict=True))

    def _due(self, run_id: str) -> dict[str, Any]:
        with suppress(RlCliError, OSError, ValueError):  # a run.yaml that cannot be used
            checks = self._checks[run_id] = self._checks.get(run_id) or DueChecks(self._run(run_id))
            due = checks.next_due()
            return {"next_due": None if due is None else time_text(due), "missed": checks.missed()}
        return {}


def _state_of(run_id: str) -> str:
    """What the look at a run's state is called."""
    return f"the state of {run_id}"
