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
from rl_cli.monitoring.endings import Endings
from rl_cli.monitoring.heartbeat import MonitorState, monitor_state, write_heartbeat
from rl_cli.monitoring.jobs import Beat, Jobs
from rl_cli.monitoring.live_runs import LiveRuns, is_orphan
from rl_cli.monitoring.systemd import notify
from rl_cli.monitoring.watching import Watched, decide, watch
from rl_cli.runs.checks.due_checks import NEEDS_PERSON, DueChecks
from rl_cli.runs.checks.monitor import check_now, next_check_seconds
from rl_cli.runs.launch import attach_run
from rl_cli.runs.outcome import is_incomplete, outcome_of
from rl_cli.runs.run_dir import RunDir
from rl_cli.runs.state_file import State, is_over
from rl_cli.runs.store import runs_folder
from rl_cli.runs.times import duration, now_text, time_text
from rl_cli.tracking.watcher import refresh, watching
from tools.spec import RULES, Decision, Judge

SCAN_SECONDS = 5.0
"""Between two looks for runs that somebody has started."""
LOOK_SECONDS = 1.0
"""Between two looks at the files of a run."""
ATTACH_AGAIN_SECONDS = 60.0
BY = "monitor"
AT_ONCE = 8
"""Runs that `--once` judges side by side: a model that hangs holds up no other run."""
TOLD = ("alert", "decision", "state", "checks_missed")
"""Events of a run that are worth a line."""

NO_ANSWER = {"trouble": f"its directory has not answered for {ANSWER_SECONDS:g} s"}
T = TypeVar("T")

JudgeOf = Callable[[RunDir], Judge | None]
Tell = Callable[[str, dict[str, Any]], None]
"""Receives a run's id and an event: of it (see `Follower`), or of the monitor (trouble, attached, live,
end)."""


class Host:
    """The monitor of one home.

    Args:
        home: RL_CLI_HOME.
        judge_of: Who judges a run; None: the rules do.
        tell: See Tell.
    """

    def __init__(self, home: Path, judge_of: JudgeOf, tell: Tell) -> None:
        self.home, self.judge_of, self.tell = home, judge_of, tell
        self.started = now_text()
        self.jobs = Jobs(self._attend, self._trouble)
        self.attaching = Jobs(self._attach, self._trouble, again_seconds=ATTACH_AGAIN_SECONDS)
        self._calls = BoundedCalls()
        self._live = LiveRuns(home)
        self._checks: dict[str, DueChecks | None] = {}
        self._endings = Endings(home)
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
                live = await self._answer("the folder of the runs", self._live.find, live)
                self._ended |= self._live.ended
                if took_from:
                    call = partial(self._take_back, live, took_from)
                    await self._answer("what another monitor was judging", call, None)
                    took_from = None
                facts = await self._facts(live)
                answering = {name: state for name, state in live.items() if name not in self.unanswered}
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
                    self._endings.save()

    async def once(self) -> bool:
        """Takes what is due now of all runs, and acts on it; tells each end that was not told yet.

        Returns:
            Whether a run needs a person.
        """
        some = asyncio.Semaphore(AT_ONCE)

        async def one(run_id: str, state: State) -> bool:
            async with some:
                try:
                    return await self._once(self._run(run_id), state)
                except Exception as error:  # whatever is wrong with one run must not stop the others
                    self._trouble(run_id, str(error) or type(error).__name__)
                    return True

        try:
            found = await asyncio.to_thread(self._live.find, over_too=True)
            return any(await asyncio.gather(*(one(run_id, state) for run_id, state in found.items())))
        finally:
            self._endings.save()

    async def _once(self, run: RunDir, state: State) -> bool:
        if is_orphan(state):
            await self._attach(run.id, lambda: None)
        news = self._endings.is_news(run.id, state)
        if is_over(state) and not (await asyncio.to_thread(_takes_end, run)):
            return news and await asyncio.to_thread(self._tell_end, run, state)
        await asyncio.to_thread(refresh, run)
        outcome = await asyncio.to_thread(check_now, run)
        if outcome is None:
            await asyncio.to_thread(self._tell_live, run)
            return False
        for alert in outcome.alerts:
            self.tell(run.id, {"kind": "alert", **alert})
        decision = await decide(run, outcome, self.judge_of(run), BY)
        if decision and outcome.why != "end":
            said = {"by": decision.by, "what": decision.what, "reason": decision.reason, "why": outcome.why}
            self.tell(run.id, {"kind": "decision", **said})
        return self._conclude(run, Watched(outcome, decision), self.tell)

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
                self._conclude(run, watched)
                over = watched.outcome.why == "end"

    async def _attach(self, run_id: str, beat: Beat) -> None:
        """A new supervisor for a run whose trainer has outlived the old one."""
        await asyncio.to_thread(attach_run, self._run(run_id))
        self.tell(run_id, {"kind": "attached"})

    def _conclude(self, run: RunDir, watched: Watched, tell: Tell | None = None) -> bool:
        """Leaves word for the person where one is needed; returns whether one is.

        `tell` is told of it as well, where nobody follows the run's events.
        """
        outcome, decision = watched.outcome, watched.decision
        if outcome.why == "end":
            return self._tell_end(run, outcome.state, decision)
        if decision is None or decision.what not in ("ask", "change"):
            return False
        word = {
            "rule": NEEDS_PERSON,
            "severity": "warning",
            "message": decision.message or decision.reason,
            "action": f"answer in rl-cli chat, or: rl-cli runs stop {run.id}",
            "figures": {"decision": decision.what},
        }
        run.append_event("alert", **word)
        if tell:
            tell(run.id, {"kind": "alert", **word})
        return True

    def _tell_ends(self) -> None:
        """Of runs that were over before anybody attended to them, or whose task failed."""
        for run_id, state in list(self._ended.items()):
            job = self.jobs.jobs.get(run_id)
            if job and not job.task.done():
                continue
            del self._ended[run_id]
            if self._endings.is_news(run_id, state):
                self._tell_end(self._run(run_id), state)

    def _tell_end(self, run: RunDir, state: State, decision: Decision | None = None) -> bool:
        """Tells it with the model's last words, if there are any; returns whether a person is needed."""
        self._endings.told(run.id, state)
        event = {"kind": "end", "message": outcome_of(run)}
        if state.get("ended"):
            event["time"] = state["ended"]
        if decision and decision.by != RULES:
            event |= {"by": decision.by, "said": decision.message}
        self.tell(run.id, event)
        return is_incomplete(state)

    def _tell_live(self, run: RunDir) -> None:
        state, left = run.state(), next_check_seconds(run)
        of = f"/{state['total_steps']}" if state.get("total_steps") else ""
        check = "no check is due yet" if left is None else f"next check in {duration(left)}"
        message = f"{state['state']}, step {state.get('step') or 0}{of}, {check}"
        self.tell(run.id, {"kind": "live", "message": message})

    def _trouble(self, run_id: str, what: str) -> None:
        self.tell(run_id, {"kind": "trouble", "what": what})

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
                self._trouble(name if name in self._checks else "", str(error))
            self._silent.add(name)
            return otherwise
        self._silent.discard(name)
        return found

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


def _takes_end(run: RunDir) -> bool:
    """Takes the end of a run that somebody judges; False if nobody does, or the end is taken."""
    checks = DueChecks(run)
    return checks.begun and checks.take_end()
